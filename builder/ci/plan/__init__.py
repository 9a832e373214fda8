"""Plan a kernel for CI: a decision about each row of the matrix, and jobs that build the selected cells."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from builder.config import Backend
from builder.kernel import Kernel
from builder.matrix import Cell, Decision, KeyPath, Row, absent, coverage
from builder.matrix.selection import Scope, Selection, ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that a built cell lacks."""

    variant: str
    rule: str
    message: str
    key: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CiPlan(Selection):
    """A kernel's selected cells, the reasons against the others, and notes about parts that selected cells lack."""

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
    """Cells of one backend and system that share a runner and a container."""

    name: str
    """The name, which is also used for caches and artifacts: only letters, digits, `_` and `-`."""
    backend: Backend
    system: str
    place: RunsOn
    cells: tuple[Cell, ...]
    seconds: float
    kernels: tuple[Kernel, ...] = ()
    """The kernel of each cell; empty in a plan of one kernel."""

    @property
    def variants(self) -> str:
        """The names of its cells, separated by spaces; in a plan of several kernels, `KERNEL:VARIANT`."""
        if not self.kernels:
            return " ".join(cell.variant for cell in self.cells)
        pairs = zip(self.kernels, self.cells, strict=True)
        return " ".join(f"{kernel.config.general.name}:{cell.variant}" for kernel, cell in pairs)

    @property
    def directories(self) -> tuple[str, ...]:
        """The folders of its kernels; empty in a plan of one kernel."""
        return tuple(dict.fromkeys(kernel.root.as_posix() for kernel in self.kernels))

    @property
    def minutes(self) -> int:
        """The estimated duration."""
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
    """Return `plan` without the cells for which `why` gives a reason, which is recorded as the decision."""
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
    """A row of the matrix, the decision about it and the reason."""

    where: str
    """The place in `build.toml` that excludes the row; empty for a built row."""

    @property
    def is_left_out(self) -> bool:
        """Whether no wheel serves the row."""
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
    """Return the number of cells and systems, in words."""
    cells = plan.cells
    systems = len({cell.system for cell in cells})
    on = f" on {systems} {'system' if systems == 1 else 'systems'}" if cells else ""
    return f"{plan.name}: {len(cells)} {'cell' if len(cells) == 1 else 'cells'}{on}"


def footnotes(plan: CiPlan) -> tuple[str, ...]:
    """Return sentences about parts that cells lack, backends without a row, and rows excluded by options."""
    variants: dict[str, list[str]] = {}
    for note in plan.notes:
        variants.setdefault(note.message, []).append(note.variant)
    about = (
        f"{names[0] if len(names) == 1 else f'{len(names)} cells'}: {message}" for message, names in variants.items()
    )
    return (*about, *map(plan.about_rowless, plan.rowless), *footnotes_of_rules(plan.skipped))


def footnotes_of_rules(skipped: Iterable[Decision]) -> Iterator[str]:
    """Yield the number of rows that each option excluded."""
    counts = Counter(decision.rule for decision in skipped)
    more = {"bundle": "more with --all", "stored": "in the store", "unchanged": "not changed"}
    yield from (f"{counts[rule]} {text}" for rule, text in more.items() if rule in counts)
