"""Find wheels of the kernels that a kernel depends on, in the output folder or the store."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from builder.kernel import Kernel
from builder.loadtest.packages import depended, module_of
from builder.matrix import Cell
from builder.store import Store
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError


def kernels(kernel: Kernel, cell: Cell, *, store: Store, output: Path) -> Mapping[str, Path]:
    """Return repository -> wheel of each kernel dependency, for the same cell or for every machine."""
    wanted = {repository: module_of(repository) for repository in depended(kernel, cell.backend)}
    found = {repository: next(_wheels(module, cell, store, output), None) for repository, module in wanted.items()}
    return {repository: path for repository, path in found.items() if path is not None}


def names(kernel: Kernel, cell: Cell) -> tuple[tuple[str, str], ...]:
    """Return module and variant of each wheel that the load test of `cell` looks for."""
    modules = map(module_of, depended(kernel, cell.backend))
    return tuple((module, variant) for module in modules for variant in _variants(cell))


def in_order(found: Sequence[Kernel]) -> tuple[int, ...]:
    """Return the places of kernels, those that others depend on first; of a circle, one has to be the first."""
    modules = {kernel.config.general.name.module: number for number, kernel in enumerate(found)}
    order: dict[int, None] = {}
    visited: set[int] = set()

    def visit(number: int) -> None:
        if number in visited:
            return
        visited.add(number)
        config = found[number].config
        for backend in dict.fromkeys(config.general.backends):
            for repository in depended(found[number], backend):
                if module_of(repository) in modules:
                    visit(modules[module_of(repository)])
        order[number] = None

    for number in range(len(found)):
        visit(number)
    return tuple(order)


def _variants(cell: Cell) -> tuple[str, ...]:
    return tuple(dict.fromkeys((cell.variant, cell.backend.facts.noarch_variant)))


def _wheels(module: str, cell: Cell, store: Store, output: Path) -> Iterator[Path]:
    """Yield the wheels of a kernel that a user of `cell` could have with it; those of the output folder first."""
    variants = _variants(cell)
    for folder in (output, *sorted((store.root / "wheels").glob("[!.]*"))):
        for path in sorted(folder.glob(f"{module}-*.whl")):
            try:
                found = kernel_wheel.read(path)
            except WheelError:
                continue  # of another tool, or half of one
            if found.module == module and str(found.variant) in variants:
                yield path
