"""Write the report of a build: its page, and beside it the trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import terminal
from builder.engine import why_object
from builder.engine.outcome import CellOutcome, Event, Listen
from builder.errors import ToolError
from builder.files import write_atomic
from builder.make.ninja_log import File
from builder.report import page, recorder, timeline, trace
from builder.report.recorder import Recorder
from builder.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The page of a build, and what goes into it."""

    target: Path
    recorder: Recorder
    title: str
    earlier: Callable[[CellOutcome], Mapping[str, File]]
    """Returns the files of the last build of a cell."""

    @classmethod
    def of(cls, target: Path, *, by_nix: bool, title: str, store: Store) -> "Report":
        """Return the report of a build that begins; its memory is measured."""

        def earlier(outcome: CellOutcome) -> Mapping[str, File]:
            if by_nix:  # the store knows what the local engine built
                return {}
            objects = () if outcome.report is None else outcome.report.objects
            return why_object.earlier(store, outcome.kernel or title, outcome.cell.variant, objects)

        look = None if by_nix else recorder.look()  # Nix's processes are not ours
        return cls(target=target, recorder=Recorder(look), title=title, earlier=earlier)

    def listening(self, show: Listen) -> Listen:
        """Return a listener that records each event and shows it."""

        def listen(event: Event) -> None:
            self.recorder.show(event)
            show(event)

        return listen

    def write(self, outcomes: Sequence[CellOutcome]) -> None:
        """Write the report of a build that has ended."""
        self._write(outcomes, None)

    def write_unfinished(self, cells: Sequence[str]) -> None:
        """Write the report of a build that was stopped; where that fails, say so and let the command end as stopped."""
        ended = {event.variant: event.outcome for _, event in self.recorder.events if event.outcome is not None}
        left = [label for label in cells if label not in ended]
        try:
            self._write([ended[label] for label in cells if label in ended], left)
        except ToolError as error:
            terminal.err(f"error: {error.message}")

    def _write(self, outcomes: Sequence[CellOutcome], left: Sequence[str] | None) -> None:
        found = timeline.of(self.recorder.events, outcomes, self.recorder.memory)
        beside = self.target.with_suffix(".trace.json")
        html = page.of(found, kernel=self.title, trace=beside.name, earlier=self.earlier, left=left)
        try:
            write_atomic(beside, trace.of(found))
            write_atomic(self.target, html)
        except OSError as error:
            raise ToolError(
                f"cannot write the report '{self.target}': {error.strerror}",
                help="the wheels are built; name another file",
            ) from error
