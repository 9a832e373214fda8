"""Find extensions and spellings that the public kernel-builder does not read."""

from collections.abc import Iterator
from typing import Any

from builder.config import Config, shape
from builder.config.gpus import code_of
from builder.config.shape import Kind, Record, Table, Tagged
from builder.config.source_tables import CudaComponent
from builder.config.text import KeyPath
from builder.config.v5 import EDITION
from builder.errors import Problem
from builder.kernel import Kernel
from builder.kernel.tree import is_glob
from builder.lint.declared import listed

_UNDERSCORED = ("cuda-capabilities", "rocm-archs")


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield the extensions and spellings that only this builder reads."""
    source = kernel.source
    if kernel.config.matrix is not None:
        yield source.problem(
            "B116",
            "the public kernel-builder refuses a config with [matrix]",
            path=("matrix",),
            severity="note",
            help="keep it where only this builder builds the kernel",
        )
    if kernel.config.build is not None:
        yield source.problem(
            "B126",
            "the public kernel-builder refuses a config with [build]",
            path=("build",),
            severity="note",
            help="give the options '--load-test' and '--toolchain' in its place, or keep it where only this builder "
            "builds the kernel",
        )
    if kernel.schema >= EDITION:
        yield from _own_keys(kernel)
        yield from _pairs(kernel)
    yield from _elsewhere(kernel)
    for path, entry in listed(kernel.config):
        if is_glob(entry):
            yield source.problem(
                "B115",
                "the public kernel-builder takes a glob for the name of a file",
                path=path,
                severity="note",
                help="list the files where the kernel is built elsewhere, too",
            )
    for key in _UNDERSCORED:
        if source.has(("torch-noarch", key)):
            yield source.problem(
                "B117",
                f"the public kernel-builder refuses '{key}' in [torch-noarch]",
                path=("torch-noarch", key),
                key=True,
                severity="warning",
                help=f"write '{key.replace('-', '_')}'",
            )


def _own_keys(kernel: Kernel) -> Iterator[Problem]:
    for path in _ours(Record(Config), kernel.source.table(), ()):
        yield kernel.source.problem(
            "B130",
            f"the public kernel-builder refuses a config with '{path[-1]}'",
            path=path,
            key=True,
            severity="note",
            help="keep it where only this builder builds the kernel",
        )


def _pairs(kernel: Kernel) -> Iterator[Problem]:
    for key, part in kernel.config.kernel.items():
        names = part.cuda_capabilities or () if isinstance(part, CudaComponent) else ()
        for number, name in enumerate(names):
            if ":" in name:
                code = code_of(name).name
                yield kernel.source.problem(
                    "B135",
                    f"the public kernel-builder takes '{name}' for one capability, which no toolkit has",
                    path=("kernel", key, "cuda-capabilities", number),
                    severity="note",
                    help=f"write '{code}', which means the same"
                    if ":" not in code
                    else "keep it where only this builder builds the kernel",
                )


def _ours(kind: Kind, value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the keys in a value of a config that only this builder reads."""
    match kind:
        case Record(type=cls):
            for item in shape.fields(cls):
                if item.key in value and item.ours:
                    yield (*path, item.key)
                elif item.key in value:
                    yield from _ours(item.kind, value[item.key], (*path, item.key))
        case Tagged(variants=variants):
            yield from _ours(Record(dict(variants)[value[kind.tag]]), value, path)
        case Table(value=below):
            for key, entry in value.items():
                yield from _ours(below, entry, (*path, key))
        case _:
            return


def _elsewhere(kernel: Kernel) -> Iterator[Problem]:
    """Yield the tables of sources that are not in the kernel's tree."""
    source = kernel.source
    for name in kernel.config.sources:
        yield source.problem(
            "B128",
            "the public kernel-builder refuses a config with [sources]",
            path=("sources", name),
            severity="note",
            help="copy the files into the kernel where it is built elsewhere, too",
        )
