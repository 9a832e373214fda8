"""Share the cells of plans among jobs: the runner and the cost of each cell, and the cells of each job."""

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from builder import resources, toml
from builder.ci.plan import CiJob, CiPlan, RunsOn
from builder.config import Config, Framework
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import Cell, absent_components
from builder.wording import listed, nearest, quoted

# Labels are written into workflow files: allow nothing that a workflow, YAML or a shell reads as syntax.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runners:
    """The runners and containers in `data/runners.toml`; a user's labels replace some."""

    own: Mapping[str, str] = field(default_factory=dict)
    """The user's label by system."""
    gitlab: bool = False
    """Use GitLab's labels, which it calls tags, and not GitHub's."""
    _known: dict[tuple[str, str, bool], RunsOn] = field(default_factory=dict, init=False, repr=False, compare=False)

    def place(self, cell: Cell) -> RunsOn:
        """Return the runner and the container for `cell`.

        Raises:
            BuilderError: no runner is known for its system.
        """
        kind = (cell.compute, cell.system, cell.noarch)
        if kind not in self._known:
            known = runner_data()["gitlab"]["runner"] if self.gitlab else runner_data()["runner"]
            runner = self.own.get(cell.system) or known.get(cell.system)
            if runner is None:
                raise BuilderError(f"no runner is known for {cell.system}", help=f"pass --runner {cell.system}=LABEL")
            self._known[kind] = RunsOn(runner=str(runner), container=_container(cell))
        return self._known[kind]


@cache
def runner_data() -> dict[str, Any]:
    """Return `data/runners.toml`."""
    return toml.loads((resources.DATA / "runners.toml").read_text(encoding="utf-8"))


def parse_runners(settings: tuple[str, ...], *, gitlab: bool = False) -> Runners:
    """Read `SYSTEM=LABEL` settings.

    Raises:
        BuilderError: a setting names no known system, or a label with unsafe characters.
    """
    own: dict[str, str] = {}
    systems = tuple(runner_data()["runner"]) if settings else ()
    for setting in settings:
        system, equals, label = setting.partition("=")
        if not equals or system not in systems:
            guess = nearest(system, systems)
            remedy = f"did you mean '{guess}'?" if guess else f"systems with a runner: {listed(systems)}"
            raise BuilderError(f"{quoted(setting)} is not SYSTEM=LABEL of a known runner", help=remedy)
        if _LABEL.fullmatch(label) is None:
            raise BuilderError(
                f"{quoted(label)} is not the label of a runner",
                help="use letters, digits, '_', '.' and '-', at most 128, as in 'ubuntu-24.04'",
            )
        own[system] = label
    return Runners(own=own, gitlab=gitlab)


def _container(cell: Cell) -> str | None:
    if cell.noarch or cell.toolkit is None:
        return None  # any machine can build Python files: no toolkit, no container
    wanted = (cell.backend.value, cell.system, str(cell.release))
    images = (
        one["image"] for one in runner_data()["container"] if (one["backend"], one["system"], one["toolkit"]) == wanted
    )
    return next(images, None)


_HOST = frozenset({".c", ".cc", ".cpp", ".cxx"})
_DEVICE = frozenset({".cu", ".hip", ".metal", ".mm", ".sycl"})
_GLOB = 4
"""The number of sources assumed for a glob, since an estimate reads no files."""


class Costs:
    """Expected seconds of the cells of one config."""

    __slots__ = ("_compile", "config")

    def __init__(self, config: Config) -> None:
        self.config = config
        self._compile: dict[tuple[object, ...], float] = {}

    def seconds(self, cell: Cell) -> float:
        """Return the duration of `cell` on one runner."""
        fixed = runner_data()["cost"]["fixed"]
        own = fixed.get("noarch" if cell.noarch else cell.backend.value, max(fixed.values()))
        return float(own) + self.compile_seconds(cell)

    def compile_seconds(self, cell: Cell) -> float:
        """Return the total time of its compilers."""
        absent = absent_components(self.config, cell)
        kind = (cell.compute, cell.noarch, cell.stable_abi is None, absent)
        if kind not in self._compile:
            tables = self.config.tables(cell.backend)
            parts = [part for path, part in tables if path[-1] not in absent or path[0] != "kernel"]
            units = sum(_seconds(source, cell) for part in parts for source in part.src)
            self._compile[kind] = 0.0 if cell.noarch else units
        return self._compile[kind]


def _seconds(source: str, cell: Cell) -> float:
    """Return the time that the compiler of a cell takes for a source."""
    if cell.framework is Framework.TVM_FFI:
        interface = "tvm-ffi"
    elif cell.framework is Framework.CTYPES:
        interface = "stable"  # its sources do not include torch's headers either
    else:
        interface = "classic" if cell.stable_abi is None else "stable"
    table, suffix = runner_data()["cost"][interface], PurePosixPath(source).suffix
    count = _GLOB if any(character in source for character in "*?[") else 1
    if suffix in _DEVICE:
        return float(count * table.get(cell.backend.value, table["host"]))
    return float(count * table["host"]) if suffix in _HOST else 0.0


MOST_JOBS = 256
"""The most jobs that GitHub runs from one matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A cell to build, with its cost."""

    cell: Cell
    cost: float
    """Expected seconds."""
    kernel: Kernel | None = None
    """The kernel of the cell; None in a plan of one kernel."""

    @property
    def owner(self) -> str:
        """The name of the kernel; empty in a plan of one kernel."""
        return "" if self.kernel is None else str(self.kernel.config.general.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    name: str
    place: RunsOn
    work: tuple[Work, ...]


def work_of(plan: CiPlan, *, of_several: bool = False) -> Iterator[Work]:
    """Yield the cells of a plan with their costs; with `of_several`, each has its kernel."""
    seconds = Costs(plan.kernel.config).seconds
    kernel = plan.kernel if of_several else None
    return (Work(cell=cell, cost=seconds(cell), kernel=kernel) for cell in plan.cells)


def jobs(work: Sequence[Work], *, place: Callable[[Cell], RunsOn], shards: int | None = None) -> tuple[CiJob, ...]:
    """Return a job for each kernel, backend, system and container; `shards` splits them into at most that many jobs.

    A noarch wheel is the same for every system, so only the first system builds it. If several kernels have more jobs
    than a matrix allows, or than `shards`, kernels share the job of their backend, system and container.

    Raises:
        BuilderError: `shards` is out of range or fewer than the places, or the matrix of one kernel would be too large.
    """
    groups = _groups(work, place=place)
    of_several = any(each.kernel is not None for each in work)
    if shards is None and len(groups) <= MOST_JOBS:
        return tuple(job for group in groups for job in _split(group, 1))
    if of_several:
        shards = MOST_JOBS if shards is None else shards
        groups = _groups(work, place=place, together=True)
    if shards is None:
        raise BuilderError(
            f"the plan needs {len(groups)} jobs, and a matrix has at most {MOST_JOBS}",
            help="plan a part of it: pass --backend or --system, and run one workflow for each part",
        )
    if not 1 <= shards <= MOST_JOBS:
        raise BuilderError(f"{shards} shards: a matrix has 1 to {MOST_JOBS} jobs", help=f"pass 1 to {MOST_JOBS}")
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
    """Group the work by runner and container: each kernel on its own, or all `together`."""
    once: dict[tuple[str, str], Work] = {}
    for each in work:
        once.setdefault((each.owner, each.cell.variant), each)  # only noarch cells share a name
    members: defaultdict[tuple[str, str, str, RunsOn], list[Work]] = defaultdict(list)
    for each in once.values():
        cell = each.cell
        members["" if together else each.owner, cell.backend.value, cell.system, place(cell)].append(each)
    groups = []
    for (owner, backend, system, where), found in members.items():
        # The name contains the toolkit if containers depend on it.
        parts = (owner, backend, system, "" if where.container is None else found[0].cell.compute)
        groups.append(_Group(name="-".join(filter(None, parts)), place=where, work=tuple(found)))
    return tuple(groups)


def _counts(groups: Sequence[_Group], shards: int) -> list[int]:
    """Return the number of jobs for each group: the group with the longest jobs always gets the next one."""
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
    """Assign each cell, the most expensive first, to the job with the least work."""
    order = sorted(range(len(group.work)), key=lambda index: (-group.work[index].cost, index))
    loads = [(0.0, number) for number in range(count)]
    shares: list[list[int]] = [[] for _ in range(count)]
    for index in order:
        load, number = loads[0]
        shares[number].append(index)
        heapq.heapreplace(loads, (load + group.work[index].cost, number))
    return tuple(
        CiJob(
            name=group.name if count == 1 else f"{group.name}-{number}of{count}",
            backend=work[0].cell.backend,
            system=work[0].cell.system,
            place=group.place,
            cells=tuple(each.cell for each in work),
            seconds=sum(each.cost for each in work),
            kernels=tuple(each.kernel for each in work if each.kernel is not None),
        )
        for number, work in enumerate(([group.work[index] for index in sorted(share)] for share in shares), 1)
    )
