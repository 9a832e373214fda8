"""Plan a kernel for CI: the decision about each row of the matrix, and the jobs that build the selected cells."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from builder.config import Backend
from builder.kernel import Kernel
from builder.matrix import Cell, Decision, KeyPath, Row, absent, coverage
from builder.matrix.selection import Scope, Selection, ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something left out of a cell that is built."""

    variant: str
    rule: str
    message: str
    key: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CiPlan(Selection):
    """The selected cells of a kernel, the reasons for the others, and notes on what selected cells leave out."""

    notes: tuple[Note, ...] = ()

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return str(self.kernel.config.general.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsOn:
    """The runner and the container of a job."""

    runner: str
    container: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CiJob:
    """Cells of one backend and system, which share a runner and a container."""

    name: str
    """Only letters, digits, `_` and `-`: it also names caches and artifacts."""
    backend: Backend
    system: str
    place: RunsOn
    cells: tuple[Cell, ...]
    seconds: float
    kernels: tuple[Kernel, ...] = ()
    """The kernel of each cell, where the plan is of several."""

    @property
    def variants(self) -> str:
        """The names of its cells, a space between two; where the plan is of several kernels, `KERNEL:VARIANT`."""
        if not self.kernels:
            return " ".join(cell.variant for cell in self.cells)
        pairs = zip(self.kernels, self.cells, strict=True)
        return " ".join(f"{kernel.config.general.name}:{cell.variant}" for kernel, cell in pairs)

    @property
    def directories(self) -> tuple[str, ...]:
        """The folders of its kernels, where the plan is of several."""
        return tuple(dict.fromkeys(kernel.root.as_posix() for kernel in self.kernels))

    @property
    def minutes(self) -> int:
        """About how long it takes."""
        return max(1, round(self.seconds / 60))


def make(kernel: Kernel, among: Iterable[Row], scope: Scope) -> CiPlan:
    """Decide about every row in scope.

    Raises:
        BuilderError: the scope names a backend that the kernel does not have.
    """
    decisions = ask(kernel, scope, among).decisions
    plan = CiPlan(kernel=kernel, scope=scope, decisions=decisions)
    return replace(plan, notes=tuple(_notes(kernel, plan.cells)))


def leave_out(plan: CiPlan, *, rule: str, remedy: str, why: Callable[[Cell], str | None]) -> CiPlan:
    """Return `plan` without the cells for which `why` returns a reason; the reason becomes their decision."""
    decisions: list[Decision] = []
    for each in plan.decisions:
        message = None if each.cell is None else why(each.cell)
        if message is None:
            decisions.append(each)
        else:
            decisions.append(Decision(row=each.row, cell=None, rule=rule, message=message, remedy=remedy))
    kept = {decision.cell.variant for decision in decisions if decision.cell is not None}
    notes = tuple(note for note in plan.notes if note.variant in kept)
    return replace(plan, decisions=tuple(decisions), notes=notes)


def without_stored(plan: CiPlan, stored: Callable[[Cell], bool]) -> CiPlan:
    """Return `plan` without the cells whose wheel is in the store."""
    return leave_out(
        plan,
        rule="stored",
        remedy="without --skip-stored, it is taken from the store",
        why=lambda cell: f"{cell.variant} is in the store" if stored(cell) else None,
    )


def _notes(kernel: Kernel, cells: Iterable[Cell]) -> Iterator[Note]:
    """Yield what each cell leaves out, which cells of one toolkit, torch and system have in common."""
    found: dict[tuple[object, ...], list[tuple[str, str, KeyPath]]] = {}
    for cell in cells:
        same = (cell.backend, cell.toolkit, cell.framework, cell.torch, cell.system)
        if same not in found:
            covered = [(each.rule, each.message, each.key) for each in coverage.of(kernel.config, cell)]
            found[same] = [
                *((each.rule, each.message, each.key) for each in absent(kernel.config, cell)),
                *((rule, message, key) for rule, message, key in covered if message is not None),
                *(("require", why, ("require", "gpus")) for _, why in coverage.unserved(kernel.config, cell)),
            ]
        for rule, message, key in found[same]:
            yield Note(variant=cell.variant, rule=rule, message=message, key=key)


MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRow(Decision):
    """A row of the matrix, what became of it and why."""

    where: str
    """The place in `build.toml` that left it out; empty for a row that is built."""

    @property
    def is_left_out(self) -> bool:
        """Whether no wheel serves this row."""
        return self.cell is None and self.rule != MERGED


def explained_rows(plan: CiPlan) -> tuple[ExplainedRow, ...]:
    """Return every candidate row, by backend, in matrix order."""
    backends = list(dict.fromkeys(decision.row.backend for decision in plan.decisions))
    return tuple(
        ExplainedRow(
            row=each.row,
            cell=each.cell,
            rule=each.rule,
            message=each.message,
            where=plan.where(each) if each.cell is None else "",
            remedy=each.remedy,
        )
        for each in sorted(plan.decisions, key=lambda decision: backends.index(decision.row.backend))
    )


def headline(plan: CiPlan) -> str:
    """Say how many cells there are, and on how many systems."""
    cells = plan.cells
    systems = len({cell.system for cell in cells})
    on = f" on {systems} {'system' if systems == 1 else 'systems'}" if cells else ""
    return f"{plan.name}: {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{on}"


def footnotes(plan: CiPlan) -> tuple[str, ...]:
    """Say what cells leave out, which backends have no row, and what an option of the plan decides."""
    variants: dict[str, list[str]] = {}
    for note in plan.notes:
        variants.setdefault(note.message, []).append(note.variant)
    about = (
        f"{names[0] if len(names) == 1 else f'{len(names)} cells'}: {message}" for message, names in variants.items()
    )
    return (*about, *map(plan.about_rowless, plan.rowless), *footnotes_of_rules(plan.skipped))


def footnotes_of_rules(skipped: Iterable[Decision]) -> Iterator[str]:
    """Yield how many rows were left out for what an option of the plan decides."""
    counts = Counter(decision.rule for decision in skipped)
    more = {"bundle": "more with --all", "stored": "in the store", "unchanged": "not changed"}
    yield from (f"{counts[rule]} {text}" for rule, text in more.items() if rule in counts)
