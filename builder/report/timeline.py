"""The timeline of a build: the steps of each cell, its files by compiler, and the critical path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.engine.outcome import CellOutcome
from builder.make.job import CompileError
from builder.make.ninja_log import File
from builder.report.recorder import TimedEvent, TimedSize
from builder.report.steps import COMPILING, DONE, WAITING, cache_name, progress, source_of, step_of
from builder.store.locks import StoppedError
from builder.wording import escaped

_CLOSE = 0.1
"""An end within these seconds counts as the cause of a start, since events and logs are not more exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A step or a file with its times, in seconds since the start of the build."""

    cell: str
    label: str
    """The name of the step, or the source of the file."""
    start: float
    end: float
    file: File | None = None
    """Ninja's entry for a file; None for a step."""

    @property
    def seconds(self) -> float:
        """The duration."""
        return self.end - self.start

    @property
    def origin(self) -> str:
        """The origin of a file in words; empty for a step."""
        if self.file is None:
            return ""
        if "cache" not in self.file:
            return "compiled here" if self.file["output"].endswith(".o") else "made here"
        cache, writer = cache_name(self.file["cache"]), self.file["writer"]
        return escaped(f"not compiled: from {cache}, compiled by {writer} in {self.file['saved']:.1f} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTimeline:
    """The steps of a cell in sequence, and its files, some of them in parallel."""

    outcome: CellOutcome
    steps: tuple[Bar, ...]
    files: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A build with its times."""

    whole: float
    """Seconds from the start to the last event."""
    events: tuple[TimedEvent, ...]
    cells: tuple[CellTimeline, ...]
    memory: tuple[TimedSize, ...] | None = None
    """The memory of all processes; None if it was not measured."""

    @property
    def files(self) -> tuple[Bar, ...]:
        """The files of all cells, by start time."""
        files = (bar for cell in self.cells for bar in cell.files)
        return tuple(sorted(files, key=lambda bar: (bar.start, bar.end, bar.cell, bar.label)))

    @property
    def compilers(self) -> tuple[tuple[Bar, ...], ...]:
        """The files by compiler: as few compilers as possible, each with one file at a time."""
        places: list[list[Bar]] = []
        for bar in self.files:
            free = next((place for place in places if place[-1].end <= bar.start), None)
            if free is None:
                places.append([bar])
            else:
                free.append(bar)
        return tuple(map(tuple, places))


def of(
    events: Sequence[TimedEvent], outcomes: Sequence[CellOutcome], memory: tuple[TimedSize, ...] | None = None
) -> Timeline:
    """Make the timeline of a build from its ordered events, and from ninja's logs in its outcomes."""
    whole = max((at for at, _ in events), default=0.0)
    cells = []
    for outcome in outcomes:
        mine = [(at, event) for at, event in events if event.variant == outcome.label]
        files = tuple(_files(outcome, mine))
        cells.append(CellTimeline(outcome=outcome, steps=tuple(_steps(mine, files, whole)), files=files))
    return Timeline(whole=whole, events=tuple(events), cells=tuple(cells), memory=memory)


def _steps(events: Sequence[TimedEvent], files: Sequence[Bar], whole: float) -> Iterator[Bar]:
    """Yield the steps of a cell; each lasts until the next starts."""
    bars: list[Bar] = []
    for at, event in events:
        step = step_of(event)
        if step and (not bars or bars[-1].label != step):
            if bars:
                bars[-1] = replace(bars[-1], end=at)
            bars.append(Bar(cell=event.variant, label=step, start=at, end=whole))
    # Ninja reports a file when it is done: compiling began with the first file's start.
    last = max((number for number, bar in enumerate(bars) if bar.label == COMPILING), default=None)
    if files and last is not None:
        before = bars[last - 1].start if last else 0.0
        began = min(bars[last].start, max(before, min(bar.start for bar in files)))
        bars[last] = replace(bars[last], start=began)
        if last:
            bars[last - 1] = replace(bars[last - 1], end=began)
    return (bar for bar in bars if bar.label != DONE)


def _files(outcome: CellOutcome, events: Sequence[TimedEvent]) -> Iterator[Bar]:
    """Yield the files that ninja made in this build, with their times."""
    files: Sequence[File] = ()
    if outcome.report is not None and outcome.status in {
        "built",
        "compiled",
    }:  # the log of a hit belongs to another build
        files = outcome.report.files or ()
    elif isinstance(outcome.error, CompileError | StoppedError):
        files = outcome.error.files
    attempt = max((number for number, (_, event) in enumerate(events) if event.kind == "step"), default=0)
    began = _ninja_began(files, events[attempt:]) if files else None
    if began is None:
        return
    for file in files:
        start, end = began + file["start"], began + file["end"]
        yield Bar(cell=outcome.label, label=source_of(file["output"]), start=start, end=end, file=file)


def _ninja_began(files: Sequence[File], events: Sequence[TimedEvent]) -> float | None:
    """Return the time at which ninja's log starts, given that ninja reports each file at its end."""
    told = [(at, found[2]) for at, event in events if (found := progress(event)) is not None]
    ends = {file["output"]: file["end"] for file in files}
    known = [at - ends[name] for at, text in told if (name := text.rpartition(" ")[2]) in ends]
    return min(known, default=told[0][0] - min(ends.values()) if told else None)


def critical_path(timeline: Timeline) -> tuple[Bar, ...]:
    """Return the steps and files that delayed the end of the build, in order.

    The path goes back from the last step of the last cell, always to the last end that allowed a start: the step
    before, the file whose end freed a compiler or gave the linker its last object, or another cell.
    """
    ended = [cell for cell in timeline.cells if cell.steps]
    if not ended:
        return ()
    last = max(ended, key=lambda cell: cell.steps[-1].end)
    files = timeline.files
    path: list[Bar] = []
    bar: Bar | None = _end_of(last, last.steps[-1])
    while bar is not None and bar not in path:
        before = _before(bar, files, timeline)
        if not (bar.label == WAITING and before is not None and before.cell != bar.cell):
            path.append(bar)
        bar = before
    return tuple(reversed(path))


def _before(bar: Bar, files: Sequence[Bar], timeline: Timeline) -> Bar | None:
    """Return the bar whose end allowed another one to start; None at the start of the build."""
    is_file = bar.file is not None
    before = _file_before(bar, files) if is_file else _waited_for(bar, timeline)
    if before is not None:
        return before
    cell = next(cell for cell in timeline.cells if cell.outcome.label == bar.cell)
    numbers = [number for number, step in enumerate(cell.steps) if step == bar or (is_file and step.label == COMPILING)]
    return _end_of(cell, cell.steps[numbers[-1] - 1]) if numbers and numbers[-1] else None


def _file_before(bar: Bar, files: Sequence[Bar]) -> Bar | None:
    """Return the last file that ended before another started: of the same cell, unless that was much earlier."""
    ended = [each for each in files if each.end <= bar.start + _CLOSE and each.start < bar.start]
    mine = [each for each in ended if each.cell == bar.cell]
    near = [each for each in ended if each.end >= bar.start - _CLOSE]
    found = [each for each in near if each.cell == bar.cell] or near or mine
    return max(found, key=_end, default=None)


def _waited_for(bar: Bar, timeline: Timeline) -> Bar | None:
    """Return the step or file of another cell that ended together with a waiting step."""
    if bar.label != WAITING or bar.seconds <= _CLOSE:
        return None
    others = [each for cell in timeline.cells for each in (*cell.files, *cell.steps) if each.cell != bar.cell]
    near = [each for each in others if abs(each.end - bar.end) <= _CLOSE and bar.start < each.end]
    found = [each for each in near if each.start < bar.end and each.label not in {WAITING, COMPILING}]
    return max(found, key=_end, default=None)


def _end_of(cell: CellTimeline, step: Bar) -> Bar:
    """Return the step, or the last file if the step is compiling."""
    files = [bar for bar in cell.files if bar.end <= step.end + _CLOSE]
    return max(files, key=_end) if step.label == COMPILING and files else step


def _end(bar: Bar) -> tuple[float, float]:
    return bar.end, bar.start
