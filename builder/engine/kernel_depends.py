"""Find wheels of the kernels that a kernel depends on, in the output folder or the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from builder.build.job import KernelFolder
from builder.build.loadtest.packages import depended, module_of
from builder.config import Framework
from builder.config.v5 import KernelDependency
from builder.engine.options import Options
from builder.environment import kernel_lock, kernel_source, locked_kernels
from builder.environment.kernel_lock import Locks
from builder.environment.locked_kernels import LockedKernels
from builder.errors import NotHereError, ToolError
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.matrix.variant import Variant
from builder.publish.index.choice import fits
from builder.run import Processes
from builder.store import Store
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError


def kernels(kernel: Kernel, cell: Cell, *, store: Store, output: Path) -> Mapping[str, Path]:
    """Return repository -> wheel of each kernel dependency, for the same cell or for every machine."""
    wanted = {repository: module_of(repository) for repository in depended(kernel, cell.backend)}
    found = {repository: next(_wheels(module, cell, store, output), None) for repository, module in wanted.items()}
    return {repository: path for repository, path in found.items() if path is not None}


def keeper(options: Options, progress: Callable[[str], None], *, processes: Processes | None = None) -> LockedKernels:
    """Return what has the locked kernels of a build."""
    return LockedKernels(
        store=options.store,
        source=kernel_source.named_by(options.environ),
        progress=progress,
        processes=processes or Processes(),
    )


def locked(kernel: Kernel, cell: Cell, keeper: LockedKernels) -> tuple[KernelFolder, ...]:
    """Return the kernels that `kernels.lock` names for a cell, each verified; none where there is no lock.

    Raises:
        LockError: the lock cannot be used, or lacks one.
        ToolError: one cannot be fetched, is not what the lock says, or has no variant for the cell.
    """
    locks = kernel_lock.read(kernel.root)
    if locks is None:
        return ()
    try:
        return tuple(_folder(wanted, cell, keeper, locks, ()) for wanted in kernel.config.kernel_depends(cell.backend))
    except NotHereError as error:
        raise ToolError(error.message, help=error.help) from error


def _folder(
    wanted: KernelDependency, cell: Cell, keeper: LockedKernels, locks: Locks, path: tuple[KernelDependency, ...]
) -> KernelFolder:
    if wanted in path:
        raise kernel_lock.LockError(f"{kernel_lock.named(wanted)} depends on itself", help="no client loads it")
    tree = keeper.tree(wanted, locks)
    there = locked_kernels.variants(tree)
    chosen = variant_for(cell, there)
    if chosen is None:
        raise ToolError(
            f"{kernel_lock.named(wanted)} at {locks[wanted].short} has no variant for {cell.variant}, but "
            f"{', '.join(there) or 'none at all'}",
            help="lock a version that has one, or build without the load test: --load-test skip",
        )
    folder = there[chosen]
    return KernelFolder(
        repo_id=wanted.repo_id,
        commit=locks[wanted].commit,
        folder=folder,
        python_depends=locked_kernels.python_depends_of(folder),
        depends=tuple(
            _folder(each, cell, keeper, locks, (*path, wanted)) for each in locked_kernels.depends_of(folder)
        ),
    )


def variant_for(cell: Cell, names: Iterable[str]) -> str | None:
    """Return the variant that the hub's client would load where a cell is tested: compiled ones first."""
    fitting = [(name, variant) for name in names if (variant := _parsed(name)) is not None and _serves(variant, cell)]
    return min(fitting, key=lambda each: _rank(each[1]), default=("", None))[0] or None


def _parsed(name: str) -> Variant | None:
    try:
        return Variant.parse(name)
    except ValueError:
        return None


def _serves(variant: Variant, cell: Cell) -> bool:
    if variant.framework is Framework.CTYPES or variant.system not in (None, cell.system):
        return False
    of_tvm_ffi = cell.framework is Framework.TVM_FFI
    if not variant.noarch and (variant.framework is Framework.TVM_FFI) != of_tvm_ffi:
        return False
    return variant.python in (None, cell.python) and fits(variant, torch=cell.torch, compute=cell.compute)


def _rank(variant: Variant) -> tuple[bool, bool, int, int]:
    """Order variants as the client does: for this torch, for a stable ABI, the newest first, and then pure Python."""
    version = variant.version
    newest = (0, 0) if version is None else (-version.major, -version.minor)
    return variant.noarch, variant.stable, *newest


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
