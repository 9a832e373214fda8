"""Select cells, give the reason for every other row, and report an empty selection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from builder.config import Backend
from builder.config.text import dotted
from builder.config.values import Version
from builder.errors import NothingToDoError
from builder.kernel import CONFIG, Kernel
from builder.matrix import (
    SETS,
    Cell,
    Decision,
    KeyPath,
    Row,
    decide,
    is_noarch,
    require_backends,
    rows,
    sets_with_cells,
    without_rows,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The requested part of the matrix; an empty tuple restricts nothing."""

    sets: tuple[str, ...] = ("release",)
    systems: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    unbundled: bool = False
    torches: tuple[Version, ...] = ()
    """Cells built with these torches; rows of other torches still count in choosing the torch of a stable ABI."""

    def candidates(self, among: Iterable[Row]) -> tuple[Row, ...]:
        """Return the rows in scope."""
        return tuple(
            row
            for row in among
            if row.set in self.sets
            and (not self.systems or row.system in self.systems)
            and (not self.backends or row.backend in self.backends)
        )

    def shows(self, row: Row) -> bool:
        """Return whether the decision about a candidate is requested."""
        return not self.torches or row.torch in self.torches


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The requested cells of a kernel, and the reason for every row without a cell."""

    kernel: Kernel
    scope: Scope
    decisions: tuple[Decision, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells to build, in matrix order."""
        return tuple(decision.cell for decision in self.decisions if decision.cell is not None)

    @property
    def skipped(self) -> tuple[Decision, ...]:
        """The decisions without a cell."""
        return tuple(decision for decision in self.decisions if decision.cell is None)

    @property
    def rowless(self) -> tuple[Backend, ...]:
        """Backends in scope without a row in the matrix."""
        found = {decision.row.backend for decision in self.decisions}
        wanted = self.scope.backends or self.kernel.config.general.backends
        return tuple(backend for backend in dict.fromkeys(wanted) if backend not in found)

    def about_rowless(self, backend: Backend) -> str:
        """Return a note about a backend without a row."""
        how = self.made_without_rows(backend)
        return _rowless(backend) if how is None else f"{_rowless(backend)}; {how}"

    def made_without_rows(self, backend: Backend) -> str | None:
        """Return how to make the wheel of a backend without a row, which needs no compiler; None if it has rows."""
        return without_rows(backend) if is_noarch(self.kernel.config, backend) else None

    def line(self, key: KeyPath, backend: Backend | None = None) -> int | None:
        """Return the line of `build.toml` with the entry of `key` for `backend`, or the closest line."""
        if not key:
            return None
        span = self.kernel.source.span(self._exact(key, backend))
        return None if span is None else span.line

    def where(self, decision: Decision) -> str:
        """Return the place in `build.toml` that decided, for messages; empty if none did."""
        line = self.line(decision.key, decision.row.backend)
        if line is None:
            return ""
        return f"{CONFIG}:{line} ({dotted(self._exact(decision.key, decision.row.backend))})"

    def _exact(self, key: KeyPath, backend: Backend | None) -> KeyPath:
        exact = key if backend is None else (*key, backend.value)
        return exact if self.kernel.source.has(exact) else key


def ask(kernel: Kernel, scope: Scope, among: Iterable[Row] | None = None) -> Selection:
    """Decide about every row in scope, of the whole matrix by default.

    Raises:
        BuilderError: the scope names a backend that the kernel does not have.
    """
    require_backends(kernel.config, scope.backends)
    candidates = scope.candidates(rows() if among is None else among)
    decisions = decide(kernel.config, candidates, unbundled=scope.unbundled)
    return Selection(
        kernel=kernel, scope=scope, decisions=tuple(decision for decision in decisions if scope.shows(decision.row))
    )


def require_cells(selection: Selection) -> None:
    """Refuse an empty selection.

    Raises:
        NothingToDoError: with the reason for every row of the kernel's backends.
    """
    if selection.cells:
        return
    general = selection.kernel.config.general
    wanted = [decision for decision in selection.decisions if decision.row.backend in general.backends]
    lines = [f"no cell of '{general.name}' is selected: there is nothing to build"]
    for decision in wanted:
        where = selection.where(decision)
        lines.append(f"  {decision.row}: {decision.message}{where and f', {where}'}")
    lines += [f"  {_rowless(backend)}" for backend in selection.rowless]
    raise NothingToDoError("\n".join(lines), help=_remedy(selection, wanted))


def _rowless(backend: Backend) -> str:
    return f"{backend}: this part of the matrix has no row for it"


def _remedy(selection: Selection, wanted: Sequence[Decision]) -> str:
    """Return the remedy for rows without a cell, and for backends without rows."""
    remedies = [how for backend in selection.rowless if (how := selection.made_without_rows(backend)) is not None]
    unbundled = any(decision.rule == "bundle" for decision in wanted)
    if unbundled:
        remedies.append("its cells are not part of a release: pass --all")
    else:  # cells are only in other sets
        scope = selection.scope
        candidates = (row for row in replace(scope, sets=SETS).candidates(rows()) if scope.shows(row))
        found = sets_with_cells(selection.kernel.config, candidates)
        remedies += (f"`--set {name}` has cells of it" for name in found if name not in scope.sets)
    if wanted and not unbundled:
        remedies.append("widen what leaves the rows out; `builder matrix --explain` says what would change each")
    return "; ".join(remedies) or "`builder matrix --set all --all` shows what the whole matrix has"
