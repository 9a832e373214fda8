"""What takes cells out of plans: --changed-since and --skip-stored."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from builder import matrix
from builder.ci.plan import CiPlan, without_stored
from builder.matrix import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """Which cells need not be built."""

    since: Callable[[CiPlan], CiPlan] | None = None
    """Leaves out cells that did not change since a revision."""
    store: Path | None = None
    """A store; cells whose wheel it has are left out."""

    @classmethod
    def by(cls, *, changed_since: str | None, store: Path | None) -> "Narrowing":
        """Return what options say."""
        return cls(since=None if changed_since is None else _since(changed_since), store=store)

    def of(self, plan: CiPlan) -> CiPlan:
        """Return a plan without them.

        Raises:
            BuilderError: git has no such revision.
        """
        if self.since is not None:
            plan = self.since(plan)
        return plan if self.store is None else without_stored(plan, _stored(plan, self.store))


def _since(revision: str) -> Callable[[CiPlan], CiPlan]:
    from builder.ci.plan.changes import Since  # noqa: PLC0415  start-up time

    since = Since(revision=revision)
    return lambda plan: since.left_of(plan, matrix.rows())


def _stored(plan: CiPlan, store: Path) -> Callable[[Cell], bool]:
    """Return whether a cell's wheel is in the store; only cells of this machine's system can have a key here."""
    from builder import toolchain  # noqa: PLC0415  start-up time
    from builder.plan import dry_run, limits  # noqa: PLC0415
    from builder.plan.options import Options  # noqa: PLC0415
    from builder.store import Store  # noqa: PLC0415

    here = toolchain.system()
    options = Options(store=Store(store), output=Path(), limits=limits.of_machine(), environ=dict(os.environ))
    cells = tuple(cell for cell in plan.cells if cell.system == here)
    found = dry_run.preview(plan.kernel, cells, options)
    # By name: a noarch wheel is the same for every system.
    hits = {one.cell.variant for one in found if one.action == "hit"}
    return lambda cell: cell.variant in hits
