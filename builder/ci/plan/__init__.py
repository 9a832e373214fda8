"""The plan of a kernel: what becomes of every candidate row, and which cells are left to build."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from builder.config import Backend
from builder.config.text import dotted
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import Kernel
from builder.matrix import Cell, Decision, KeyPath, Row, absent_components, coverage, decide, is_noarch, without_rows
from builder.wording import nearest

CONFIG = "build.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The part of the matrix that is planned; an empty tuple restricts nothing."""

    sets: tuple[str, ...] = ("release",)
    systems: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    unbundled: bool = False

    def candidates(self, among: Iterable[Row]) -> tuple[Row, ...]:
        """Return the rows in scope."""
        return tuple(
            row
            for row in among
            if row.set in self.sets
            and (not self.systems or row.system in self.systems)
            and (not self.backends or row.backend in self.backends)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something left out of a cell that is built."""

    variant: str
    rule: str
    message: str
    key: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is built of a kernel, and the reason for whatever is not."""

    kernel: Kernel
    scope: Scope
    decisions: tuple[Decision, ...]
    notes: tuple[Note, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells to build, in matrix order."""
        return tuple(decision.cell for decision in self.decisions if decision.cell is not None)

    @property
    def skipped(self) -> tuple[Decision, ...]:
        """What becomes of every other row."""
        return tuple(decision for decision in self.decisions if decision.cell is None)

    @property
    def rowless(self) -> tuple[Backend, ...]:
        """Backends in scope for which the matrix has no row."""
        found = {decision.row.backend for decision in self.decisions}
        wanted = self.scope.backends or self.kernel.config.general.backends
        return tuple(backend for backend in dict.fromkeys(wanted) if backend not in found)

    def about_rowless(self, backend: Backend) -> str:
        """Return what to know of a backend without a row."""
        how = without_rows(backend) if is_noarch(self.kernel.config, backend) else None
        return f"{backend}: this part of the matrix has no row for it" + ("" if how is None else f"; {how}")

    def line(self, key: KeyPath, backend: Backend | None = None) -> int | None:
        """Return the line of `build.toml` with the entry of `key` for `backend`, or with what is closest to it."""
        if not key:
            return None
        span = self.kernel.source.span(self._exact(key, backend))
        return None if span is None else span.line

    def where(self, decision: Decision) -> str:
        """Return the place in `build.toml` that decided, to read; empty where none did."""
        line = self.line(decision.key, decision.row.backend)
        if line is None:
            return ""
        return f"{CONFIG}:{line} ({dotted(self._exact(decision.key, decision.row.backend))})"

    def _exact(self, key: KeyPath, backend: Backend | None) -> KeyPath:
        exact = key if backend is None else (*key, backend.value)
        return exact if self.kernel.source.has(exact) else key


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job runs."""

    runner: str
    container: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Cells of one backend and system, which share a runner and a container."""

    name: str
    """Letters, digits, `_` and `-` alone: it also names caches and artifacts."""
    backend: Backend
    system: str
    place: Place
    cells: tuple[Cell, ...]
    seconds: float

    @property
    def variants(self) -> str:
        """The names of its cells, a space between two."""
        return " ".join(cell.variant for cell in self.cells)


def make(kernel: Kernel, among: Iterable[Row], scope: Scope) -> Plan:
    """Decide about every row in scope.

    Raises:
        BuilderError: the scope names a backend that the kernel does not have.
    """
    _check_backends(kernel, scope.backends)
    decisions = decide(kernel.config, scope.candidates(among), unbundled=scope.unbundled)
    plan = Plan(kernel=kernel, scope=scope, decisions=decisions)
    return replace(plan, notes=tuple(_notes(kernel, plan.cells)))


def leave_out(plan: Plan, *, rule: str, remedy: str, why: Callable[[Cell], str | None]) -> Plan:
    """Return `plan` without the cells for which `why` gives a reason, which becomes their decision."""
    decisions = tuple(_left(decision, rule=rule, remedy=remedy, why=why) for decision in plan.decisions)
    left = {decision.cell.variant for decision in decisions if decision.cell is not None}
    notes = tuple(note for note in plan.notes if note.variant in left)
    return replace(plan, decisions=decisions, notes=notes)


def without_stored(plan: Plan, stored: Callable[[Cell], bool]) -> Plan:
    """Return `plan` without the cells whose wheel is in the store."""
    return leave_out(
        plan,
        rule="stored",
        remedy="without --skip-stored, it is taken from the store",
        why=lambda cell: f"{cell.variant} is in the store" if stored(cell) else None,
    )


def require_cells(plan: Plan) -> None:
    """Refuse a plan that the config leaves empty.

    Raises:
        NothingToDoError: with the reason for every row of the kernel's backends.
    """
    if plan.cells:
        return
    wanted = plan.kernel.config.general.backends
    rows = [decision for decision in plan.decisions if decision.row.backend in wanted]
    reasons = [f"  {decision.row}: {decision.message}{_at(plan, decision)}" for decision in rows]
    reasons += [f"  {plan.about_rowless(backend)}" for backend in plan.rowless]
    help_ = "widen what leaves the rows out; `builder matrix --explain` says what would change each"
    raise NothingToDoError("\n".join(["no cell is selected: nothing would be built", *reasons]), help=help_)


def _at(plan: Plan, decision: Decision) -> str:
    where = plan.where(decision)
    return f", {where}" if where else ""


def _left(decision: Decision, *, rule: str, remedy: str, why: Callable[[Cell], str | None]) -> Decision:
    message = None if decision.cell is None else why(decision.cell)
    if message is None:
        return decision
    return Decision(row=decision.row, cell=None, rule=rule, message=message, remedy=remedy)


def _notes(kernel: Kernel, cells: Iterable[Cell]) -> Iterator[Note]:
    found: dict[tuple[object, ...], list[tuple[str, str, KeyPath]]] = {}
    for cell in cells:
        same = (cell.backend, cell.toolkit, cell.framework)
        if same not in found:
            found[same] = list(_remarks(kernel, cell))
        for rule, message, key in found[same]:
            yield Note(variant=cell.variant, rule=rule, message=message, key=key)


def _remarks(kernel: Kernel, cell: Cell) -> Iterator[tuple[str, str, KeyPath]]:
    """Yield rule, message and key of what cells of one toolkit leave out."""
    for name in absent_components(kernel.config, cell):
        message = f"component '{name}' is left out: CUDA {cell.toolkit} is below its cuda-minver"
        yield "cuda-minver", message, ("kernel", name, "cuda-minver")
    for covered in coverage.of(kernel.config, cell):
        if covered.message is not None:
            yield covered.rule, covered.message, covered.key


def _check_backends(kernel: Kernel, named: Iterable[Backend]) -> None:
    own = [backend.value for backend in kernel.config.general.backends]
    for backend in named:
        if backend.value in own:
            continue
        guess = nearest(backend.value, own)
        remedy = f"did you mean '{guess}'?" if guess else f"add \"{backend}\" to 'general.backends', or name one it has"
        raise BuilderError(
            f"'{kernel.config.general.name}' has no backend '{backend}': it has {', '.join(own) or 'none'}",
            help=remedy,
        )
