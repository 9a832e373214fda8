"""The report of a build: what it is told, and when its page is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import terminal
from builder.engine import why_object
from builder.engine.outcome import CellOutcome, Event, Listen
from builder.errors import ToolError
from builder.files import write_atomic
from builder.make.ninja_log import File
from builder.report import memory
from builder.report.page import Recorder
from builder.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The page of a build, and what goes into it."""

    target: Path
    recorder: Recorder
    title: str
    earlier: Callable[[CellOutcome], Mapping[str, File]]
    """What the last build of a cell made."""

    @classmethod
    def of(cls, target: Path, *, by_nix: bool, title: str, store: Store) -> "Report":
        """Return the report of a build that begins; its memory is measured."""

        def earlier(outcome: CellOutcome) -> Mapping[str, File]:
            if by_nix:  # the store knows what the local engine built
                return {}
            objects = () if outcome.report is None else outcome.report.objects
            return why_object.earlier(store, outcome.kernel or title, outcome.cell.variant, objects)

        look = None if by_nix else memory.look()  # Nix's processes are not ours
        return cls(target=target, recorder=Recorder(look), title=title, earlier=earlier)

    def listening(self, show: Listen) -> Listen:
        """Return what a build tells its events."""

        def listen(event: Event) -> None:
            self.recorder.show(event)
            show(event)

        return listen

    def write(self, outcomes: Sequence[CellOutcome]) -> None:
        """Write the report of a build that has ended."""
        _write(self.target, self.recorder.page(outcomes, kernel=self.title, earlier=self.earlier))

    def write_unfinished(self, cells: Sequence[str]) -> None:
        """Write the report of a build that is stopped; that it was, is what the command ends with."""
        try:
            _write(self.target, self.recorder.unfinished(cells, kernel=self.title, earlier=self.earlier))
        except ToolError as error:
            terminal.err(f"error: {error.message}")


def _write(target: Path, content: bytes) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, content)
    except OSError as error:
        raise ToolError(
            f"cannot write the report '{target}': {error.strerror}", help="the wheels are built; name another file"
        ) from error
