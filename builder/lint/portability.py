"""What the public kernel-builder does not read."""

from collections.abc import Iterator

from builder.errors import Problem
from builder.kernel import Kernel
from builder.kernel.tree import is_glob
from builder.lint.files import listed

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
            help="give the option '--load-test' in its place, or keep it where only this builder builds the kernel",
        )
    if kernel.config.torch is not None and kernel.config.torch.python_abi is not None:
        yield source.problem(
            "B140",
            "the public kernel-builder refuses 'python-abi' in [torch]",
            path=("torch", "python-abi"),
            key=True,
            severity="note",
            help="register ops with TORCH_LIBRARY_EXPAND where the kernel is built elsewhere, too",
        )
    for name in kernel.config.sources:
        yield source.problem(
            "B128",
            "the public kernel-builder refuses a config with [sources]",
            path=("sources", name),
            severity="note",
            help="copy the files into the kernel where it is built elsewhere, too",
        )
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
