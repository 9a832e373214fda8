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

_REFUSES = "the public kernel-builder refuses"
_ONLY_HERE = "keep it where only this builder builds the kernel"


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield the extensions and spellings that only this builder reads."""
    config, source = kernel.config, kernel.source
    if source.has(("matrix",)):
        message = f"{_REFUSES} a config with [matrix]"
        yield source.problem("B116", message, path=("matrix",), severity="note", help=_ONLY_HERE)
    if source.has(("build",)):
        message = f"{_REFUSES} a config with [build]"
        remedy = f"give the options '--load-test' and '--toolchain' in its place, or {_ONLY_HERE}"
        yield source.problem("B126", message, path=("build",), severity="note", help=remedy)
    if kernel.schema >= EDITION:
        for path in _ours(Record(Config), source.table(), ()):
            message = f"{_REFUSES} a config with '{path[-1]}'"
            yield source.problem("B130", message, path=path, key=True, severity="note", help=_ONLY_HERE)
        yield from _pairs(kernel)
    for name in config.sources:
        message = f"{_REFUSES} a config with [sources]"
        remedy = "copy the files into the kernel where it is built elsewhere, too"
        yield source.problem("B128", message, path=("sources", name), severity="note", help=remedy)
    for path, entry in config.entries("src"):
        if is_glob(entry):
            message = "the public kernel-builder takes a glob for the name of a file"
            remedy = "list the files where the kernel is built elsewhere, too"
            yield source.problem("B115", message, path=path, severity="note", help=remedy)
    for key in ("cuda-capabilities", "rocm-archs"):
        path = ("torch-noarch", key)
        if source.has(path):
            message = f"{_REFUSES} '{key}' in [torch-noarch]"
            remedy = f"write '{key.replace('-', '_')}'"
            yield source.problem("B117", message, path=path, key=True, severity="warning", help=remedy)


def _pairs(kernel: Kernel) -> Iterator[Problem]:
    """Report pairs of capabilities; some pairs have a shorter name."""
    for key, part in kernel.config.kernel.items():
        names = part.cuda_capabilities or () if isinstance(part, CudaComponent) else ()
        for number, name in enumerate(names):
            if ":" in name:
                short = code_of(name).name
                message = f"the public kernel-builder takes '{name}' for one capability, which no toolkit has"
                remedy = _ONLY_HERE if ":" in short else f"write '{short}', which means the same"
                path = ("kernel", key, "cuda-capabilities", number)
                yield kernel.source.problem("B135", message, path=path, severity="note", help=remedy)


def _ours(kind: Kind, value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the keys in a config value that only this builder reads."""
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
