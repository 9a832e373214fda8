"""The outcome of a cell, and the events during its build; the same for both engines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from builder.errors import BuilderError
from builder.make.build_report import BuildReport
from builder.matrix import Cell

Status = Literal["built", "compiled", "hit", "skipped", "stopped", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """The outcome of one cell."""

    cell: Cell
    status: Status
    wheel: Path | None = None
    sha256: str | None = None
    reason: str = ""
    """Why it was built again, skipped or failed."""
    error: BuilderError | None = None
    seconds: float = 0.0
    log: Path | None = None
    report: BuildReport | None = None
    """The report on the build of its wheel, if there is one."""
    notes: tuple[str, ...] = ()
    """Notes on problems that did not fail the build, such as a cache that did not answer."""
    kernel: str = ""
    """The kernel of the cell, if several kernels are built."""

    @property
    def label(self) -> str:
        """The variant of the cell, with its kernel if several are built."""
        return labelled(self.cell.variant, kernel=self.kernel)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "variant": self.cell.variant,
            "status": self.status,
            "wheel": None if self.wheel is None else str(self.wheel),
            "sha256": self.sha256,
            "reason": self.reason,
            "help": None if self.error is None else self.error.help,
            "seconds": round(self.seconds, 3),
            "log": None if self.log is None else str(self.log),
            "notes": list(self.notes),
            "report": {} if self.report is None else self.report.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a cell."""

    variant: str
    """The label of the cell."""
    kind: Literal["step", "line", "note", "done"]
    text: str = ""
    outcome: CellOutcome | None = None
    expected: float | None = None
    """The seconds that the cell's last build took from here."""


Listen = Callable[[Event], None]


def labelled(variant: str, *, kernel: str) -> str:
    """Return a variant as commands accept it: `KERNEL:VARIANT` if several kernels are built."""
    return f"{kernel}:{variant}" if kernel else variant


def for_kernel(listen: Listen, kernel: str) -> Listen:
    """Return a listener that adds the kernel to each event; for a single kernel, return `listen`."""
    return lambda event: listen(replace(event, variant=labelled(event.variant, kernel=kernel)))
