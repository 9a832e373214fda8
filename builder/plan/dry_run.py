"""Dry run: tell for each cell whether it would be built, and why."""

from dataclasses import asdict, dataclass, replace
from typing import Literal

from builder import json_text
from builder.errors import BuilderError, ConfigError, NotHereError
from builder.hashes import sha256
from builder.kernel import Kernel
from builder.make import reproducible
from builder.make.build_report import BuildReport
from builder.make.record import BuildRecord, Change, changes, summary
from builder.matrix import Cell
from builder.plan import size_estimate
from builder.plan.ask import Ask, KernelBuild
from builder.plan.planner import Planner
from builder.plan.size_estimate import SizeEstimate
from builder.store import Damaged, Store, StoredWheel


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The plan for a cell: whether it would be built, and the reason."""

    cell: Cell
    action: Literal["hit", "build", "skip", "refuse"]
    reason: str
    key: str | None = None
    changes: tuple[Change, ...] = ()
    not_reproducible: str | None = None
    """Why its bytes may differ elsewhere."""
    size: SizeEstimate | None = None
    """The estimated size of its wheel, if its kernel has a limit."""

    @property
    def text(self) -> str:
        """The plan in words."""
        words = {
            "hit": "is in the store",
            "build": "would be built",
            "skip": "cannot be built here",
            "refuse": "is refused",
        }
        mark = "" if self.not_reproducible is None else f"; not reproducible: {self.not_reproducible}"
        size = "" if self.size is None else f"; {self.size.text}"
        return f"{words[self.action]} ({self.reason.splitlines()[0]}){mark}{size}"

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        changes = [asdict(change) for change in self.changes]
        return {
            "variant": self.cell.variant,
            "action": self.action,
            "reason": self.reason,
            "key": self.key,
            "changes": changes,
            "not-reproducible": self.not_reproducible,
            "estimated-size": None if self.size is None else self.size.bytes,
        }


def preview(build: KernelBuild) -> tuple[DryRun, ...]:
    """Tell for each cell whether the store has it, or which field changed since its last build.

    The store may be absent, and stays as it is.
    """
    planner = Planner(kernel=build.kernel, ask=build.ask)
    return tuple(_plan(planner, cell) for cell in build.cells)


def find(store: Store, key: str) -> StoredWheel | Damaged | None:
    """Return the store's entry for a key; an entry with an unreadable report counts as damaged."""
    found = store.find(key)
    if isinstance(found, StoredWheel):
        try:
            BuildReport.from_json(found.report)
        except ValueError as error:
            return Damaged(key=key, why=str(error))
    return found


def alike(kernel: Kernel, ask: Ask) -> str:
    """Return the name under which the store keeps the last build of each cell, to compare with builds of its kind.

    Its kind is the folder of the kernel, whether it was built against pinned wheels, and for which GPUs.
    """
    kind = (str(kernel.root.resolve()), "" if ask.isolation else "installed", *ask.options.only)
    return f"{kernel.config.general.name}-{sha256(json_text.line(kind))[:12]}"


def why(kernel: Kernel, ask: Ask, cell: Cell, *, record: BuildRecord, found: StoredWheel | Damaged | None) -> str:
    """Return a line that says why a cell is a hit, or why it is built."""
    if isinstance(found, Damaged):
        return f"the entry in the store is damaged and is built again: {found.why}"
    if isinstance(found, StoredWheel):
        return "built again, as asked" if ask.again else "nothing changed"
    last = ask.store.last(alike(kernel, ask), cell.variant)
    return "first build of this cell" if last is None else summary(last, record)


def _plan(planner: Planner, cell: Cell) -> DryRun:
    ask, kernel = planner.ask, planner.kernel
    try:
        spec = planner.spec(cell)
        record = planner.record(spec)
    except NotHereError as error:
        return DryRun(cell=cell, action="skip", reason=str(error))
    except ConfigError:  # a problem of the kernel, not of this cell
        raise
    except BuilderError as error:
        return DryRun(cell=cell, action="refuse", reason=str(error))
    last = ask.store.last(alike(kernel, ask), cell.variant)
    if record is None:  # the environment was never made: only the pins name its torch
        before = spec.pins if last is None else last.get("pins")
        plan = DryRun(
            cell=cell,
            action="build",
            reason="the store has no environment for its pins yet" if before == spec.pins else "changed: pins",
            changes=() if before == spec.pins else (Change(field="pins", before=before, after=spec.pins),),
        )
    else:
        found = find(ask.store, record.key)
        plan = DryRun(
            cell=cell,
            action="hit" if isinstance(found, StoredWheel) else "build",
            reason=why(kernel, ask, cell, record=record, found=found),
            key=record.key,
            changes=() if last is None or isinstance(found, StoredWheel) else changes(last, record),
            not_reproducible=reproducible.why_not_reproducible(
                cuda=record.toolchain.get("cuda-version"), canonical=bool(record.environment["place"])
            ),
        )
    if plan.action == "hit" or ask.options.only:
        return plan
    return replace(plan, size=size_estimate.of(ask.store, kernel, cell))
