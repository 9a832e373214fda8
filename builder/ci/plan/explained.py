"""What a plan says of each row of the matrix: one place for what text and pages show."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from builder.ci.plan import CiPlan
from builder.matrix import Cell, Decision, Row

MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRow:
    """A row of the matrix, what became of it and why."""

    row: Row
    cell: Cell | None
    rule: str
    message: str
    where: str
    """The place in `build.toml` that left it out; empty for a row that is built."""
    remedy: str

    @property
    def is_left_out(self) -> bool:
        """Whether no wheel serves this row."""
        return self.cell is None and self.rule != MERGED


def rows(plan: CiPlan) -> tuple[ExplainedRow, ...]:
    """Return every candidate row, by backend, in matrix order."""
    backends = dict.fromkeys(decision.row.backend for decision in plan.decisions)
    return tuple(_row(plan, each) for backend in backends for each in plan.decisions if each.row.backend is backend)


def _row(plan: CiPlan, decision: Decision) -> ExplainedRow:
    return ExplainedRow(
        row=decision.row,
        cell=decision.cell,
        rule=decision.rule,
        message=decision.message,
        where=plan.where(decision) if decision.cell is None else "",
        remedy=decision.remedy,
    )


def headline(plan: CiPlan) -> str:
    """Say how many cells there are, and on how many systems."""
    cells = plan.cells
    systems = len({cell.system for cell in cells})
    on = f" on {systems} {'system' if systems == 1 else 'systems'}" if cells else ""
    return f"{plan.kernel.config.general.name}: {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{on}"


def footnotes(plan: CiPlan) -> tuple[str, ...]:
    """Say what cells leave out, which backends have no row, and what an option of the plan decides."""
    return (*_remarks(plan), *map(plan.about_rowless, plan.rowless), *footnotes_of_rules(plan.skipped))


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
