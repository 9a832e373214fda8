"""Jobs: cells that one machine builds one after the other."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from builder.ci.plan import CiJob, RunsOn
from builder.errors import BuilderError
from builder.matrix import Cell

MOST_JOBS = 256
"""Jobs that GitHub runs of one matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    name: str
    place: RunsOn
    cells: tuple[Cell, ...]
    costs: tuple[float, ...]


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
    if shards is not None and not 1 <= shards <= MOST_JOBS:
        raise BuilderError(f"{shards} shards: a matrix has 1 to {MOST_JOBS} jobs", help=f"pass 1 to {MOST_JOBS}")
    groups = _groups(cells, place=place, seconds=seconds)
    if len(groups) > MOST_JOBS:
        raise BuilderError(
            f"the plan needs {len(groups)} jobs, and a matrix has at most {MOST_JOBS}",
            help="plan a part of it: pass --backend or --system, and run one workflow for each part",
        )
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


def _groups(
    cells: Iterable[Cell], *, place: Callable[[Cell], RunsOn], seconds: Callable[[Cell], float]
) -> tuple[_Group, ...]:
    members: defaultdict[tuple[str, str, RunsOn], list[Cell]] = defaultdict(list)
    for cell in _once(cells):
        members[cell.backend.value, cell.system, place(cell)].append(cell)
    return tuple(
        _Group(name=_name(found, where), place=where, cells=tuple(found), costs=tuple(map(seconds, found)))
        for (_, _, where), found in members.items()
    )


def _once(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Yield one cell of each name: only noarch cells share theirs."""
    seen: set[str] = set()
    for cell in cells:
        if cell.variant not in seen:
            seen.add(cell.variant)
            yield cell


def _name(cells: Sequence[Cell], where: RunsOn) -> str:
    """Return the unique name of a job; it has the toolkit, because containers differ by it."""
    first = cells[0]
    name = f"{first.backend}-{first.system}"
    return name if where.container is None else f"{name}-{first.compute}"


def _counts(groups: Sequence[_Group], shards: int) -> list[int]:
    """Return how many jobs each group gets: always one more for the one whose jobs take longest."""
    counts = [1] * len(groups)
    totals = [sum(group.costs) for group in groups]
    heap = [(-total, index) for index, total in enumerate(totals) if len(groups[index].cells) > 1]
    heapq.heapify(heap)
    for _ in range(shards - len(groups)):
        if not heap:
            break
        _, index = heapq.heappop(heap)
        counts[index] += 1
        if counts[index] < len(groups[index].cells):
            heapq.heappush(heap, (-totals[index] / counts[index], index))
    return counts


def _split(group: _Group, count: int) -> tuple[CiJob, ...]:
    """Give each cell, the most expensive first, to the job with the least work."""
    order = sorted(range(len(group.cells)), key=lambda index: (-group.costs[index], index))
    loads = [(0.0, number) for number in range(count)]
    shares: list[list[int]] = [[] for _ in range(count)]
    for index in order:
        load, number = loads[0]
        shares[number].append(index)
        heapq.heapreplace(loads, (load + group.costs[index], number))
    return tuple(_job(group, sorted(share), number=number, count=count) for number, share in enumerate(shares))


def _job(group: _Group, share: Sequence[int], *, number: int, count: int) -> CiJob:
    first = group.cells[0]
    return CiJob(
        name=group.name if count == 1 else f"{group.name}-{number + 1}of{count}",
        backend=first.backend,
        system=first.system,
        place=group.place,
        cells=tuple(group.cells[index] for index in share),
        seconds=sum(group.costs[index] for index in share),
    )
