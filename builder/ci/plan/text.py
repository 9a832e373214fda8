"""A plan as text: its cells, and the decision about every row."""

from collections.abc import Iterable, Iterator, Sequence

from builder.ci.plan import CiJob, CiPlan
from builder.config import Framework
from builder.matrix import Decision
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
    lines = [_headline(plan)]
    for backend in dict.fromkeys(decision.row.backend for decision in plan.decisions):
        lines += ["", backend.value]
        for decision in plan.decisions:
            if decision.row.backend is backend:
                lines += _explained(plan, decision)
    return "\n".join([*lines, *_footnotes(plan)]) + "\n"


def _headline(plan: CiPlan) -> str:
    cells = plan.cells
    systems = len({cell.system for cell in cells})
    on = f" on {systems} {'system' if systems == 1 else 'systems'}" if cells else ""
    return f"{plan.kernel.config.general.name}: {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{on}"


def _table(plan: CiPlan, jobs: Sequence[CiJob] | None) -> Iterator[str]:
    yield _headline(plan)
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
    found = list(_remarks(plan))
    found += [plan.about_rowless(backend) for backend in plan.rowless]
    found += footnotes_of_rules(plan.skipped)
    yield from ("", *found) if found else ()


def footnotes_of_rules(skipped: Iterable[Decision]) -> Iterator[str]:
    """Yield how many rows were left out for what an option of the plan decides."""
    counts: dict[str, int] = {}
    for decision in skipped:
        counts[decision.rule] = counts.get(decision.rule, 0) + 1
    more = {"bundle": "more with --all", "stored": "in the store", "unchanged": "not changed"}
    yield from (f"{counts[rule]} {text}" for rule, text in more.items() if rule in counts)


def _remarks(plan: CiPlan) -> Iterator[str]:
    """Yield what cells leave out: each message once, and the cells that it is about."""
    variants: dict[str, list[str]] = {}
    for note in plan.notes:
        variants.setdefault(note.message, []).append(note.variant)
    for message, names in variants.items():
        yield f"{names[0] if len(names) == 1 else f'{len(names)} cells'}: {message}"


def _explained(plan: CiPlan, decision: Decision) -> Iterator[str]:
    word = decision.rule if decision.cell is not None or decision.rule == "merged" else "left out"
    rule = "" if word == decision.rule else f" [{decision.rule}]"
    yield f"  {decision.row}: {word}{rule}"
    yield f"      {decision.message}"
    where = plan.where(decision)
    if where and decision.cell is None:
        yield f"      decided by {where}"
    if decision.remedy:
        yield f"      to change it: {decision.remedy}"
