"""The page of a build: its first error, what ran when, what the store had, and what was slow."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder import templates
from builder.engine.outcome import CellOutcome, Event
from builder.report import critical_path, drawing, from_caches, slow_files, timeline, wheel_sizes
from builder.report.first_error import first_error
from builder.report.memory import Look, Sampler
from builder.report.slow_files import Earlier
from builder.report.timeline import Bar, CellTimeline, TimedEvent
from builder.wording import escaped, size

_LONGEST_OF_PATH = 12
"""How much of the critical path is said in words: what took longest."""
_SHORTEST = 0.05
"""Seconds from which a step is worth a word."""
ZOOMS = (1, 4, 16, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSection:
    """What the page says of a cell."""

    label: str
    status: str
    seconds: float
    memory: str
    """The most that its largest process took."""
    reason: str
    """Why it was built again, or what went wrong, in a line."""
    said: str
    """What else was said of what went wrong."""
    notes: tuple[str, ...]
    steps: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathInWords:
    """The critical path as a list: what took longest of it, in the order of the build."""

    bars: tuple[Bar, ...]
    seconds: float
    """The whole of it."""
    more: int
    """How many shorter ones are left out."""
    left_out: float
    """The seconds of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """That a build was stopped."""

    left: tuple[str, ...]
    """The cells that had no end, not even that they were stopped."""


class Recorder:
    """Records the time of each event; a listener of a build, called from any thread."""

    def __init__(self, look: Look | None = None) -> None:
        self._began = time.monotonic()
        self._events: list[TimedEvent] = []
        self._lock = threading.Lock()
        self._sampler = None if look is None else Sampler(look, self._now)

    def _now(self) -> float:
        return time.monotonic() - self._began

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure the memory while a build runs, if there is what looks at it."""
        with contextlib.nullcontext() if self._sampler is None else self._sampler.running():
            yield

    def show(self, event: Event) -> None:
        """Note an event."""
        with self._lock:
            self._events.append((self._now(), event))

    def unfinished(self, cells: Sequence[str], *, kernel: str, earlier: Earlier = lambda _: {}) -> bytes:
        """Return the page of a build that was stopped: what was done until then, of the `cells` that it was of."""
        with self._lock:
            found = [event.outcome for _, event in self._events if event.outcome is not None]
        ended = {outcome.label: outcome for outcome in found}
        outcomes = [ended[label] for label in cells if label in ended]
        left = tuple(label for label in cells if label not in ended)
        return self._page(outcomes, Unfinished(left=left), kernel=kernel, earlier=earlier)

    def page(self, outcomes: Sequence[CellOutcome], *, kernel: str, earlier: Earlier = lambda _: {}) -> bytes:
        """Return the page as HTML; `earlier` knows the builds before."""
        return self._page(outcomes, None, kernel=kernel, earlier=earlier)

    def _page(
        self, outcomes: Sequence[CellOutcome], unfinished: Unfinished | None, *, kernel: str, earlier: Earlier
    ) -> bytes:
        with self._lock:
            events = tuple(self._events)
        found = timeline.of(events, outcomes)
        path = critical_path.of(found)
        on_path = frozenset(map(id, path))
        return templates.page(
            "build.html.j2",
            kernel=kernel,
            unfinished=unfinished,
            whole=found.whole,
            counts=Counter(outcome.status for outcome in outcomes),
            compiled=from_caches.compiled(outcomes),
            error=first_error((event for _, event in events), outcomes),
            zooms=ZOOMS,
            ticks=tuple(drawing.ticks(found.whole)),
            cell_lanes=tuple(drawing.cell_lanes(found, on_path)),
            compiler_lanes=tuple(drawing.compiler_lanes(found, on_path)),
            memory=drawing.memory(() if self._sampler is None else self._sampler.samples, found.whole),
            measured=self._sampler is not None,
            path=_in_words(path),
            sizes=tuple(wheel_sizes.of(outcomes)),
            cells=[_section(cell) for cell in found.cells if cell.outcome.status != "skipped"],
            skipped=[_skipped(outcome) for outcome in outcomes if outcome.status == "skipped"],
            slowest=slow_files.of(found.cells, earlier),
        )


def _in_words(path: Sequence[Bar]) -> PathInWords:
    longest = sorted(path, key=lambda bar: -bar.seconds)[:_LONGEST_OF_PATH]
    kept = frozenset(id(bar) for bar in longest if bar.seconds >= _SHORTEST)
    left_out = [bar for bar in path if id(bar) not in kept]
    return PathInWords(
        bars=tuple(bar for bar in path if id(bar) in kept),
        seconds=sum(bar.seconds for bar in path),
        more=len(left_out),
        left_out=sum(bar.seconds for bar in left_out),
    )


def _section(cell: CellTimeline) -> CellSection:
    outcome = cell.outcome
    report = outcome.report
    peak = report.peak_memory if report is not None and outcome.status in {"built", "compiled"} else None
    reason, *said = (escaped(line.expandtabs()) for line in outcome.reason.splitlines() or [""])
    return CellSection(
        label=outcome.label,
        status=from_caches.status_of(outcome),
        seconds=outcome.seconds,
        memory=size(peak) if peak else "",
        reason=reason.removeprefix(f"{outcome.cell.variant}: "),
        said="\n".join(said),
        notes=tuple(map(escaped, outcome.notes)),
        steps=tuple(bar for bar in cell.steps if bar.seconds >= _SHORTEST),
    )


def _skipped(outcome: CellOutcome) -> dict[str, str]:
    return {"label": outcome.label, "reason": outcome.reason.removeprefix(f"{outcome.cell.variant} ")}
