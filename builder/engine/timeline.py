"""The page of a build: what ran when, what the store had, and what was slow."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from builder import pages
from builder.engine.first_error import first_error
from builder.engine.outcome import CellOutcome, Event
from builder.engine.steps import DONE, ORDER, is_progress, source_of, step_of

_WIDTH = 1000
"""Units of the drawing's width, for the whole build."""
_MIB = 1 << 20
_SLOWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Something that took time; seconds since the build began."""

    label: str
    start: float
    end: float
    lane: int = 0

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start

    @property
    def hue(self) -> int:
        """Its colour in the drawing, the same in every cell."""
        return ORDER.index(self.label) * 40 if self.label in ORDER else 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """A cell as it is drawn: its steps in the first lane, files below."""

    outcome: CellOutcome
    steps: tuple[Bar, ...]
    files: tuple[Bar, ...]

    @property
    def lanes(self) -> int:
        """Rows of files."""
        return 1 + max((bar.lane for bar in self.files), default=-1)

    @property
    def memory(self) -> str:
        """The most that its largest process took."""
        report = self.outcome.report
        peak = report.peak_memory if report is not None and self.outcome.status == "built" else None
        return f"{peak / _MIB:.0f} MiB" if peak else "unknown"


class Recorder:
    """Records the time of each event; a listener of a build, called from any thread."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._events: list[tuple[float, Event]] = []
        self._lock = threading.Lock()

    def show(self, event: Event) -> None:
        """Note an event."""
        with self._lock:
            self._events.append((time.monotonic() - self._began, event))

    def page(self, outcomes: Sequence[CellOutcome], *, kernel: str) -> bytes:
        """Return the page as HTML."""
        whole = max((at for at, _ in self._events), default=0.0)
        cells = tuple(self._cell(outcome, whole) for outcome in outcomes)
        slowest = sorted(
            ((bar, cell) for cell in cells for bar in cell.files), key=lambda each: each[0].seconds, reverse=True
        )
        counts = Counter(outcome.status for outcome in outcomes)
        return pages.render(
            "build.html.j2",
            kernel=kernel,
            whole=whole,
            scale=_WIDTH / whole if whole else 0.0,
            width=_WIDTH,
            cells=[cell for cell in cells if cell.outcome.status != "skipped"],
            skipped=[_skipped(cell.outcome) for cell in cells if cell.outcome.status == "skipped"],
            slowest=slowest[:_SLOWEST],
            counts=counts,
            error=first_error((event for _, event in self._events), outcomes),
        )

    def _cell(self, outcome: CellOutcome, whole: float) -> TimelineRow:
        events = [(at, event) for at, event in self._events if event.variant == outcome.label]
        files = _placed(outcome, events)
        return TimelineRow(outcome=outcome, steps=_steps(events, whole), files=files)


def _skipped(outcome: CellOutcome) -> dict[str, str]:
    return {"label": outcome.label, "reason": outcome.reason.removeprefix(f"{outcome.cell.variant} ")}


def _steps(events: Sequence[tuple[float, Event]], whole: float) -> tuple[Bar, ...]:
    """Return the steps of a cell; each lasts until the next begins."""
    marks = [(at, step_of(event)) for at, event in events if step_of(event)]
    if not marks:
        return ()
    ends = [*(at for at, _ in marks[1:]), whole]
    bars = [Bar(label=label, start=at, end=end) for (at, label), end in zip(marks, ends, strict=True)]
    joined: list[Bar] = []
    for bar in bars:
        if joined and joined[-1].label == bar.label:
            bar = Bar(label=bar.label, start=joined.pop().start, end=bar.end)  # noqa: PLW2901
        joined.append(bar)
    return tuple(bar for bar in joined if bar.label != DONE)


def _placed(outcome: CellOutcome, events: Sequence[tuple[float, Event]]) -> tuple[Bar, ...]:
    """Return the compiled files, in lanes where none overlaps another."""
    report = outcome.report
    files = (report.files or ()) if report is not None and outcome.status == "built" else ()
    first = next((at for at, event in events if is_progress(event)), None)
    if not files or first is None:
        return ()
    began = first - min(file["end"] for file in files)  # ninja tells of a file when it is done
    free: list[float] = []
    bars = []
    for file in files:
        lane = next((index for index, until in enumerate(free) if until <= file["start"]), len(free))
        free[lane : lane + 1] = [file["end"]]
        bars.append(
            Bar(
                label=source_of(file["output"]) + (" (from a cache)" if "cache" in file else ""),
                start=began + file["start"],
                end=began + file["end"],
                lane=lane,
            )
        )
    return tuple(bars)
