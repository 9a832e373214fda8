"""The plans of several kernels together: one table, one document, and jobs that share machines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from builder.ci.plan import CiJob, CiPlan
from builder.ci.plan import shards as sharing
from builder.ci.plan.costs import Costs
from builder.ci.plan.explained import footnotes_of_rules
from builder.ci.plan.runners import Runners
from builder.wording import columns, reasons_left_out

Reasons = Mapping[str, str]
"""Why a kernel has no part in the plan, by its name or folder."""


def jobs(plans: Iterable[CiPlan], runners: Runners, *, shards: int | None) -> tuple[CiJob, ...]:
    """Return one job for each kernel, backend, system and container; more than a service runs share their machines.

    Raises:
        BuilderError: `shards` is out of range or fewer than the places, or no runner is known.
    """
    work = [work for plan in plans for work in _work(plan)]
    return sharing.of_several(work, place=runners.place, shards=shards)


def _work(plan: CiPlan) -> Iterator[sharing.Work]:
    seconds = Costs(plan.kernel.config).seconds
    return (sharing.Work(cell=cell, cost=seconds(cell), kernel=plan.kernel) for cell in plan.cells)


def names(plans: Iterable[CiPlan], jobs: Sequence[CiJob] | None) -> str:
    """Return `KERNEL:VARIANT` on a line; with shards, one shard on a line."""
    if jobs is not None:
        return "".join(f"{job.variants}\n" for job in jobs)
    found = (f"{_name(plan)}:{cell.variant}" for plan in plans for cell in plan.cells)
    return "".join(f"{name}\n" for name in dict.fromkeys(found))


def table(plans: Sequence[CiPlan], jobs: Sequence[CiJob] | None, left_out: Reasons) -> str:
    """Return the number of cells of each kernel and backend, and why others have no part in the plan."""
    lines = [_headline(plans), "", *_counts(plans)]
    if jobs is not None:
        lines += ["", *columns([("job", "cells", "minutes"), *map(_job, jobs)])]
    notes = [*footnotes_of_rules([skipped for plan in plans for skipped in plan.skipped]), *reasons_left_out(left_out)]
    return "\n".join([*lines, *(("", *notes) if notes else ())]) + "\n"


def _headline(plans: Sequence[CiPlan]) -> str:
    cells = [cell for plan in plans for cell in plan.cells]
    systems = len({cell.system for cell in cells})
    on = f" on {systems} {'system' if systems == 1 else 'systems'}" if cells else ""
    return f"{_count(len(plans), 'kernel')}: {_count(len(cells), 'cell')}{on}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _counts(plans: Sequence[CiPlan]) -> list[str]:
    found = dict.fromkeys(cell.backend for plan in plans for cell in plan.cells)
    backends = tuple(sorted(found, key=lambda backend: backend.value))
    rows = [("kernel", "cells", *(backend.value for backend in backends))]
    for plan in plans:
        each = [sum(cell.backend is backend for cell in plan.cells) for backend in backends]
        rows.append((_name(plan), str(len(plan.cells)), *(str(count or "-") for count in each)))
    return columns(rows)


def _name(plan: CiPlan) -> str:
    return str(plan.kernel.config.general.name)


def _job(job: CiJob) -> tuple[str, str, str]:
    return job.name, str(len(job.cells)), str(job.minutes)
