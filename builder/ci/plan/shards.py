"""Jobs: cells that one machine builds one after the other."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from builder.ci.plan import CiJob, RunsOn
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import Cell

MOST_JOBS = 256
"""Jobs that GitHub runs of one matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A cell to build, and what it costs."""

    cell: Cell
    cost: float
    """Expected seconds."""
    kernel: Kernel | None = None
    """Whose cell it is, where a plan is of several kernels."""

    @property
    def owner(self) -> str:
        """The name of its kernel, where a plan is of several."""
        return "" if self.kernel is None else str(self.kernel.config.general.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    name: str
    place: RunsOn
    work: tuple[Work, ...]


def jobs(
    cells: Iterable[Cell],
    *,
    place: Callable[[Cell], RunsOn],
    seconds: Callable[[Cell], float],
    shards: int | None = None,
) -> tuple[CiJob, ...]:
    """Return one job for each backend, system and container; with `shards`, up to that many, of like cost.

    A noarch wheel is the same for every system, so the first system builds it for all.

    Raises:
        BuilderError: `shards` is out of range or fewer than the places, or a matrix would be too large.
    """
    groups = _groups([Work(cell=cell, cost=seconds(cell)) for cell in cells], place=place)
    if shards is None and len(groups) > MOST_JOBS:
        raise BuilderError(
            f"the plan needs {len(groups)} jobs, and a matrix has at most {MOST_JOBS}",
            help="plan a part of it: pass --backend or --system, and run one workflow for each part",
        )
    return _shared(groups, shards=shards)


def of_several(work: Sequence[Work], *, place: Callable[[Cell], RunsOn], shards: int | None) -> tuple[CiJob, ...]:
    """Return one job for each kernel, backend, system and container.

    Where these are more than a matrix has, or than `shards`, kernels share jobs of their backend, system and container.

    Raises:
        BuilderError: `shards` is out of range or fewer than the places.
    """
    groups = _groups(work, place=place)
    if shards is None and len(groups) <= MOST_JOBS:
        return _shared(groups, shards=None)
    return _shared(_groups(work, place=place, together=True), shards=MOST_JOBS if shards is None else shards)


def _shared(groups: Sequence[_Group], *, shards: int | None) -> tuple[CiJob, ...]:
    if shards is not None and not 1 <= shards <= MOST_JOBS:
        raise BuilderError(f"{shards} shards: a matrix has 1 to {MOST_JOBS} jobs", help=f"pass 1 to {MOST_JOBS}")
    if shards is None:
        return tuple(job for group in groups for job in _split(group, 1))
    if shards < len(groups):
        places = ", ".join(group.name for group in groups)
        raise BuilderError(
            f"{shards} {'shard is' if shards == 1 else 'shards are'} too few: the cells need {len(groups)} different "
            f"machines ({places})",
            help=f"pass at least {len(groups)}, or restrict the plan with --backend or --system",
        )
    counts = _counts(groups, shards)
    return tuple(job for group, count in zip(groups, counts, strict=True) for job in _split(group, count))


def _groups(work: Iterable[Work], *, place: Callable[[Cell], RunsOn], together: bool = False) -> tuple[_Group, ...]:
    """Return the work by place, that of each kernel by itself or all `together`."""
    members: defaultdict[tuple[str, str, str, RunsOn], list[Work]] = defaultdict(list)
    for each in _once(work):
        cell = each.cell
        members["" if together else each.owner, cell.backend.value, cell.system, place(cell)].append(each)
    return tuple(
        _Group(name="-".join(filter(None, (owner, _name(found[0].cell, where)))), place=where, work=tuple(found))
        for (owner, _, _, where), found in members.items()
    )


def _once(work: Iterable[Work]) -> Iterator[Work]:
    """Yield one cell of each name: only noarch cells share theirs."""
    seen: set[tuple[str, str]] = set()
    for each in work:
        name = (each.owner, each.cell.variant)
        if name not in seen:
            seen.add(name)
            yield each


def _name(cell: Cell, where: RunsOn) -> str:
    """Return the name of a place, unique in its kernel; it has the toolkit, because containers differ by it."""
    name = f"{cell.backend}-{cell.system}"
    return name if where.container is None else f"{name}-{cell.compute}"


def _counts(groups: Sequence[_Group], shards: int) -> list[int]:
    """Return how many jobs each group gets: always one more for the one whose jobs take longest."""
    counts = [1] * len(groups)
    totals = [sum(each.cost for each in group.work) for group in groups]
    heap = [(-total, index) for index, total in enumerate(totals) if len(groups[index].work) > 1]
    heapq.heapify(heap)
    for _ in range(shards - len(groups)):
        if not heap:
            break
        _, index = heapq.heappop(heap)
        counts[index] += 1
        if counts[index] < len(groups[index].work):
            heapq.heappush(heap, (-totals[index] / counts[index], index))
    return counts


def _split(group: _Group, count: int) -> tuple[CiJob, ...]:
    """Give each cell, the most expensive first, to the job with the least work."""
    order = sorted(range(len(group.work)), key=lambda index: (-group.work[index].cost, index))
    loads = [(0.0, number) for number in range(count)]
    shares: list[list[int]] = [[] for _ in range(count)]
    for index in order:
        load, number = loads[0]
        shares[number].append(index)
        heapq.heapreplace(loads, (load + group.work[index].cost, number))
    return tuple(_job(group, sorted(share), number=number, count=count) for number, share in enumerate(shares))


def _job(group: _Group, share: Sequence[int], *, number: int, count: int) -> CiJob:
    work = tuple(group.work[index] for index in share)
    first = work[0].cell
    return CiJob(
        name=group.name if count == 1 else f"{group.name}-{number + 1}of{count}",
        backend=first.backend,
        system=first.system,
        place=group.place,
        cells=tuple(each.cell for each in work),
        seconds=sum(each.cost for each in work),
        kernels=tuple(each.kernel for each in work if each.kernel is not None),
    )
