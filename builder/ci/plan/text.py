"""A plan as text: its cells, and the decision about every row."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from builder.ci.plan import CiJob, CiPlan, explained
from builder.ci.plan.explained import ExplainedRow
from builder.config import Framework
from builder.wording import columns


def names(plan: CiPlan, jobs: Sequence[CiJob] | None) -> str:
    """Return one variant on a line; with shards, one shard on a line. A noarch name stands for all its systems."""
    if jobs is not None:
        return "".join(f"{job.variants}\n" for job in jobs)
    return "".join(f"{variant}\n" for variant in dict.fromkeys(cell.variant for cell in plan.cells))


def table(plan: CiPlan, jobs: Sequence[CiJob] | None) -> str:
    """Return the cells by backend, and what else there is to know."""
    return "\n".join((*_table(plan, jobs), *_footnotes(plan))) + "\n"


def explain(plan: CiPlan) -> str:
    """Return the decision about every candidate row, by backend: rule, line of the config, remedy."""
    lines = [explained.headline(plan)]
    for backend, rows in groupby(explained.rows(plan), key=lambda row: row.row.backend):
        lines += ["", backend.value]
        for row in rows:
            lines += _explained(row)
    return "\n".join([*lines, *_footnotes(plan)]) + "\n"


def _table(plan: CiPlan, jobs: Sequence[CiJob] | None) -> Iterator[str]:
    yield explained.headline(plan)
    job_of = {cell.variant: job.name for job in jobs or () for cell in job.cells}
    head = ("variant", "torch", "toolkit", "system", *(() if jobs is None else ("job",)))
    groups: dict[str, list[tuple[str, ...]]] = {}
    for cell in plan.cells:
        row = (
            cell.variant,
            "-" if cell.framework is Framework.CTYPES else str(cell.torch),
            cell.toolkit or "-",
            cell.system,
        )
        groups.setdefault(cell.backend.value, []).append((*row, *(() if jobs is None else (job_of[cell.variant],))))
    lines = columns([head, *(row for rows in groups.values() for row in rows)])
    yield from ("", f"  {lines.pop(0)}") if groups else ()
    for backend, rows in groups.items():
        yield f"{backend} ({len(rows)})"
        for _ in rows:
            yield f"  {lines.pop(0)}"


def _footnotes(plan: CiPlan) -> Iterator[str]:
    found = explained.footnotes(plan)
    yield from ("", *found) if found else ()


def _explained(row: ExplainedRow) -> Iterator[str]:
    word = "left out" if row.is_left_out else row.rule
    rule = f" [{row.rule}]" if row.is_left_out else ""
    yield f"  {row.row}: {word}{rule}"
    yield f"      {row.message}"
    if row.where:
        yield f"      decided by {row.where}"
    if row.remedy:
        yield f"      to change it: {row.remedy}"
