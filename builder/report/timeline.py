"""What ran when in a build: the steps of each cell, and each compiled file in the place of a compiler."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.engine.outcome import CellOutcome, Event
from builder.make.job import CompileError
from builder.make.ninja_log import File
from builder.report.steps import COMPILING, DONE, progress, source_of, step_of
from builder.store.locks import StoppedError

TimedEvent = tuple[float, Event]
"""Seconds since the build began, and what happened then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A step or a file that took time; seconds since the build began."""

    cell: str
    label: str
    """The name of the step, or the source of the file."""
    start: float
    end: float
    file: File | None = None
    """What ninja says of it; None for a step."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTimeline:
    """What a cell did, one after the other, and the files that it made side by side."""

    outcome: CellOutcome
    steps: tuple[Bar, ...]
    files: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What ran when."""

    whole: float
    """Seconds from the first event to the last."""
    cells: tuple[CellTimeline, ...]

    @property
    def files(self) -> tuple[Bar, ...]:
        """The files of all cells, in the order in which they were begun."""
        files = (bar for cell in self.cells for bar in cell.files)
        return tuple(sorted(files, key=lambda bar: (bar.start, bar.end, bar.cell, bar.label)))

    @property
    def compilers(self) -> tuple[tuple[Bar, ...], ...]:
        """The files by the compiler that made them: as few compilers as can have run, each with one file at a time."""
        places: list[list[Bar]] = []
        for bar in self.files:
            free = next((place for place in places if place[-1].end <= bar.start), None)
            if free is None:
                places.append([bar])
            else:
                free.append(bar)
        return tuple(map(tuple, places))


def of(events: Sequence[TimedEvent], outcomes: Sequence[CellOutcome]) -> Timeline:
    """Return what ran when, by the events of a build in their order and by the logs of ninja in its outcomes."""
    whole = max((at for at, _ in events), default=0.0)
    cells = tuple(_cell(outcome, events, whole) for outcome in outcomes)
    return Timeline(whole=whole, cells=cells)


def _cell(outcome: CellOutcome, events: Sequence[TimedEvent], whole: float) -> CellTimeline:
    mine = [(at, event) for at, event in events if event.variant == outcome.label]
    files = tuple(_files(outcome, mine))
    steps = tuple(_steps(outcome.label, mine, whole))
    return CellTimeline(outcome=outcome, steps=tuple(_begun_with(steps, files)), files=files)


def _steps(cell: str, events: Sequence[TimedEvent], whole: float) -> Iterator[Bar]:
    """Yield the steps of a cell; each lasts until another begins."""
    marks = [(at, step) for at, event in events if (step := step_of(event))]
    changes = [mark for number, mark in enumerate(marks) if number == 0 or marks[number - 1][1] != mark[1]]
    ends = (*(at for at, _ in changes[1:]), whole)
    for (start, step), end in zip(changes, ends, strict=False):  # without any step there is an end alone
        if step != DONE:
            yield Bar(cell=cell, label=step, start=start, end=end)


def _files(outcome: CellOutcome, events: Sequence[TimedEvent]) -> Iterator[Bar]:
    """Yield what ninja made, when it did."""
    files = _made(outcome)
    again = max((number for number, (_, event) in enumerate(events) if event.kind == "step"), default=0)
    began = _ninja_began(files, events[again:]) if files else None
    if began is None:
        return
    for file in files:
        yield Bar(
            cell=outcome.label,
            label=source_of(file["output"]),
            start=began + file["start"],
            end=began + file["end"],
            file=file,
        )


def _made(outcome: CellOutcome) -> tuple[File, ...]:
    """Return what ninja made in this build, and not in that of a hit."""
    if outcome.report is not None and outcome.status in {"built", "compiled"}:
        return outcome.report.files or ()
    return outcome.error.files if isinstance(outcome.error, CompileError | StoppedError) else ()


def _ninja_began(files: Sequence[File], events: Sequence[TimedEvent]) -> float | None:
    """Return when ninja began, whose log counts from there: it tells of a file when that is done."""
    told = [(at, found[2]) for at, event in events if (found := progress(event)) is not None]
    ends = {file["output"]: file["end"] for file in files}
    known = [at - ends[name] for at, text in told if (name := text.rpartition(" ")[2]) in ends]
    return min(known, default=told[0][0] - min(ends.values()) if told else None)


def _begun_with(steps: Sequence[Bar], files: Sequence[Bar]) -> Iterator[Bar]:
    """Yield steps in which compiling begins with the first file, and not when that is done."""
    first = min((bar.start for bar in files), default=None)
    numbers = [number for number, step in enumerate(steps) if step.label == COMPILING]
    if first is None or not numbers:
        yield from steps
        return
    for number, step in enumerate(steps):
        begin = max(first, steps[numbers[-1] - 1].start if numbers[-1] else 0.0)
        if number == numbers[-1]:
            yield replace(step, start=min(begin, step.start))
        elif number == numbers[-1] - 1:
            yield replace(step, end=min(begin, step.end))
        else:
            yield step
