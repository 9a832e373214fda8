"""Find wheels of the kernels that a kernel depends on, in the output folder or the store."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from builder.build.loadtest.packages import depended, module_of
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.store import Store
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError


def kernels(kernel: Kernel, cell: Cell, *, store: Store, output: Path) -> Mapping[str, Path]:
    """Return repository -> wheel of each kernel dependency, for the same cell or for every machine."""
    wanted = {repository: module_of(repository) for repository in depended(kernel, cell.backend)}
    found = {repository: next(_wheels(module, cell, store, output), None) for repository, module in wanted.items()}
    return {repository: path for repository, path in found.items() if path is not None}


def _wheels(module: str, cell: Cell, store: Store, output: Path) -> Iterator[Path]:
    """Yield the wheels of a kernel that a user of `cell` could have with it; those of the output folder first."""
    variants = {cell.variant, cell.backend.facts.noarch_variant}
    for folder in (output, *sorted((store.root / "wheels").glob("[!.]*"))):
        for path in sorted(folder.glob(f"{module}-*.whl")):
            try:
                found = kernel_wheel.read(path)
            except WheelError:
                continue  # of another tool, or half of one
            if found.module == module and str(found.variant) in variants:
                yield path
