"""A plan for people: its cells, what becomes of every row, what the stable ABI saves."""

from collections.abc import Iterator, Sequence

from builder.matrix import Decision
from builder.plan import Plan
from builder.plan.costs import Saving
from builder.plan.shards import Job


def names(plan: Plan, jobs: Sequence[Job] | None) -> str:
    """Return one variant on a line; with shards, one shard on a line. A noarch name stands for all its systems."""
    if jobs is not None:
        return "".join(f"{job.variants}\n" for job in jobs)
    return "".join(f"{variant}\n" for variant in dict.fromkeys(cell.variant for cell in plan.cells))


def table(plan: Plan, jobs: Sequence[Job] | None) -> str:
    """Return the cells by backend, and what else there is to know."""
    return "\n".join((*_table(plan, jobs), *_footnotes(plan))) + "\n"


def explain(plan: Plan) -> str:
    """Return what becomes of every candidate row, by backend: rule, place in the config, remedy."""
    lines = [_headline(plan)]
    for backend in dict.fromkeys(decision.row.backend for decision in plan.decisions):
        lines += ["", backend.value]
        for decision in plan.decisions:
            if decision.row.backend is backend:
                lines += _explained(plan, decision)
    return "\n".join([*lines, *_footnotes(plan)]) + "\n"


def saved(kernel: str, savings: Sequence[Saving]) -> str:
    """Return what the stable ABI saves, one backend on a line and the sum."""
    rows: list[tuple[str, ...]] = [("backend", "wheels", "without", "compile", "without", "saved")]
    rows += [_saving(saving.backend.value, saving) for saving in savings]
    rows.append(_sum(savings))
    note = "compile: estimated seconds of compilers, one after the other (builder/data/runners.toml)"
    return "\n".join([f"{kernel}: what the stable ABI saves", "", *_columns(rows), "", note]) + "\n"


def _headline(plan: Plan) -> str:
    cells = plan.cells
    systems = len({cell.system for cell in cells})
    on = f" on {systems} {'system' if systems == 1 else 'systems'}" if cells else ""
    return f"{plan.kernel.config.general.name}: {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{on}"


def _table(plan: Plan, jobs: Sequence[Job] | None) -> Iterator[str]:
    yield _headline(plan)
    job_of = {cell.variant: job.name for job in jobs or () for cell in job.cells}
    head = ("variant", "torch", "toolkit", "system", *(() if jobs is None else ("job",)))
    groups: dict[str, list[tuple[str, ...]]] = {}
    for cell in plan.cells:
        row = (cell.variant, str(cell.torch), cell.toolkit or "-", cell.system)
        groups.setdefault(cell.backend.value, []).append((*row, *(() if jobs is None else (job_of[cell.variant],))))
    lines = _columns([head, *(row for rows in groups.values() for row in rows)])
    yield from ("", f"  {lines.pop(0)}") if groups else ()
    for backend, rows in groups.items():
        yield f"{backend} ({len(rows)})"
        for _ in rows:
            yield f"  {lines.pop(0)}"


def _footnotes(plan: Plan) -> Iterator[str]:
    found = [note.message for note in plan.notes]
    found += [plan.about_rowless(backend) for backend in plan.rowless]
    counts: dict[str, int] = {}
    for decision in plan.skipped:
        counts[decision.rule] = counts.get(decision.rule, 0) + 1
    more = {"bundle": "more with --all", "stored": "in the store", "unchanged": "not changed"}
    found += [f"{counts[rule]} {text}" for rule, text in more.items() if rule in counts]
    yield from ("", *found) if found else ()


def _explained(plan: Plan, decision: Decision) -> Iterator[str]:
    word = decision.rule if decision.cell is not None or decision.rule == "merged" else "left out"
    rule = "" if word == decision.rule else f" [{decision.rule}]"
    yield f"  {decision.row}: {word}{rule}"
    yield f"      {decision.message}"
    where = plan.where(decision)
    if where and decision.cell is None:
        yield f"      decided by {where}"
    if decision.remedy:
        yield f"      to change it: {decision.remedy}"


def _saving(name: str, saving: Saving) -> tuple[str, ...]:
    return (
        name,
        str(saving.wheels),
        str(saving.wheels_without),
        f"{saving.seconds:.0f} s",
        f"{saving.seconds_without:.0f} s",
        f"{saving.wheels_without - saving.wheels} wheels, {saving.seconds_without - saving.seconds:.0f} s",
    )


def _sum(savings: Sequence[Saving]) -> tuple[str, ...]:
    wheels, without = sum(one.wheels for one in savings), sum(one.wheels_without for one in savings)
    seconds, slow = sum(one.seconds for one in savings), sum(one.seconds_without for one in savings)
    saved_ = f"{without - wheels} wheels, {slow - seconds:.0f} s"
    return ("total", str(wheels), str(without), f"{seconds:.0f} s", f"{slow:.0f} s", saved_)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
