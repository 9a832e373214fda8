"""What one kernel needs besides compilers: sources and kernels from elsewhere, and code for the GPUs it requires."""

from collections import Counter
from collections.abc import Iterator, Sequence

from builder.doctor.machine import Fact
from builder.environment import foreign, locked_kernels
from builder.kernel import Kernel
from builder.make import kernel_lock
from builder.make.kernel_lock import LockError
from builder.matrix import Cell, coverage
from builder.store import Store

_FETCHED = "the next build fetches it"
_KEPT = "in the store"


def facts(kernel: Kernel, cells: Sequence[Cell], store: Store) -> Iterator[Fact]:
    """Yield what a kernel names and this machine or its cells have or lack; nothing is fetched."""
    for name, source in kernel.config.sources.items():
        kept = foreign.is_kept(store, source)
        place = source.git or source.url
        yield Fact(name=f"source {name}", found=_KEPT if kept else None, help=f"{_FETCHED} from {place}")
    yield from _locked(kernel, store)
    yield from _gpus(kernel, cells)


def _locked(kernel: Kernel, store: Store) -> Iterator[Fact]:
    try:
        wanted, locks = locked_kernels.depends(kernel), kernel_lock.read(kernel.root)
    except LockError as error:
        yield Fact(name=kernel_lock.NAME, found=None, help=f"{error.message}; {error.help}")
        return
    for each in wanted:
        if locks is None or each not in locks:
            remedy = f"not in {kernel_lock.NAME}, by which builds find it: builder lock"
            yield Fact(name=f"kernel {each.repo_id}", found=None, help=remedy)
    for each, locked in (locks or {}).items():
        kept = locked_kernels.is_kept(store, locked)
        found = f"{locked.short}, {_KEPT}" if kept else None
        yield Fact(name=f"kernel {each.repo_id}", found=found, help=f"{_FETCHED} at {locked.short}")


def _gpus(kernel: Kernel, cells: Sequence[Cell]) -> Iterator[Fact]:
    """Yield each required GPU; why a cell has no code for it is a note of the plan."""
    lacking = Counter(name for cell in cells for name, _ in coverage.unserved(kernel.config, cell))
    for name in () if kernel.config.require is None else kernel.config.require.gpus:
        of_backend = [cell for cell in cells if cell.backend is name.gpu.backend and not cell.noarch]
        of = f"of {len(of_backend)} cells of {name.gpu.backend.facts.title}"
        found = None if lacking[name] or not of_backend else f"code in all {of}"
        yield Fact(name=f"GPU {name}", found=found, help=f"{lacking[name]} {of} have no code for it")
