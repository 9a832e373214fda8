"""The Python package of a kernel."""

from collections.abc import Iterator

from builder.config import Config, Framework
from builder.errors import Problem
from builder.kernel import Kernel

_EXTENSIONS = {Framework.TORCH: "torch-ext", Framework.TORCH_NOARCH: "torch-ext", Framework.TVM_FFI: "tvm-ffi-ext"}


def directory(config: Config) -> str:
    """Return the directory of the Python package, relative to the kernel's."""
    return f"{_EXTENSIONS[config.framework]}/{config.general.name.module}"


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield a package that cannot be imported, or that stands a level too deep."""
    name = directory(kernel.config)
    module = kernel.config.general.name.module
    nested = kernel.root / name / module
    if nested.is_dir():
        yield kernel.source.problem(
            "B124",
            f"the package '{name}' has a directory of its own name in it",
            path=("general", "name"),
            help=f"move the files of '{name}/{module}' up to '{name}'",
        )
    elif not (kernel.root / name / "__init__.py").is_file():
        yield kernel.source.problem(
            "B123",
            f"the Python package has no '{name}/__init__.py'",
            path=("general", "name"),
            help=_remedy(kernel, name),
        )


def _remedy(kernel: Kernel, name: str) -> str:
    parent = (kernel.root / name).parent
    others = sorted(path.parent.name for path in parent.glob("*/__init__.py"))
    if len(others) == 1:
        return f"rename '{parent.name}/{others[0]}': the kernel is called '{kernel.config.general.name}'"
    return "create it: the package is named like the kernel, with '_' for '-'"
