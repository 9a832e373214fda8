"""The page about a build: its first error, a timeline, its slowest files and the sizes of its wheels."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from builder import templates
from builder.audit import sizes
from builder.audit.sizes import WheelSizes
from builder.engine.outcome import CellOutcome, Event
from builder.errors import BuilderError
from builder.make.ninja_log import File
from builder.report.recorder import TimedSize
from builder.report.steps import KNOWN, compiled, source_of, status_of, warnings
from builder.report.timeline import Bar, CellTimeline, Timeline, critical_path
from builder.wheel.archive import Wheel
from builder.wording import escaped, size

_LONGEST_OF_PATH = 12
"""The most entries of the critical path that are listed; shorter ones are counted."""
_SHORTEST = 0.05
"""The shortest step or file that is listed, in seconds."""
_SLOWEST = 20
"""The most slow files that are listed."""
_SAME = 0.1
"""Times within these seconds, or this share, of each other count as equal."""
_ERROR_LINES = 20
_NAMED = 0.05
"""A file without device code is named if it has at least this share of the wheel."""
_REST = "code for processors and data, in libraries with code for GPUs"
_TICKS = 5
_COLUMNS = 400
"""The most points of the memory curve."""
_LONGEST_TEXT = 60
"""The most characters of text in a bar."""
_PLACE = re.compile(
    r"(?P<file>[^\s:(][^:(]*)(?::(?P<line>\d+)(?::\d+)?|\((?P<row>\d+)\)): "
    r"(?:(?:fatal |catastrophic )?error| *required from )"
    r"|CMake Error at (?P<cmake>[^:]+):(?P<cmake_line>\d+)"
)
"""The start of an error line of GCC, Clang, nvcc or CMake, or of the line that instantiated a template."""
_FAILED = re.compile(r"FAILED: (?:\[code=\d+\] )?(?P<output>\S+)")
"""Ninja's line about an output that it could not make."""
_BASE = re.compile(r"^.*/src/(?=[^/])")
"""The project's folder in a build: /tmp/builder/src, or src in a folder of the store."""

Earlier = Callable[[CellOutcome], Mapping[str, File]]
"""Returns the files of a cell's previous build, by path, as far as known."""


def of(timeline: Timeline, *, kernel: str, trace: str, earlier: Earlier, left: Sequence[str] | None = None) -> bytes:
    """Return the page as HTML.

    Args:
        timeline: the build.
        kernel: its title.
        trace: the name of the trace's file.
        earlier: the builds before.
        left: the cells that had not started when the build was stopped.
    """
    outcomes = [cell.outcome for cell in timeline.cells]
    path = critical_path(timeline)
    on_path = frozenset(map(id, path))
    longest = sorted(path, key=lambda bar: -bar.seconds)[:_LONGEST_OF_PATH]
    listed = frozenset(id(bar) for bar in longest if bar.seconds >= _SHORTEST)
    unlisted = [bar for bar in path if id(bar) not in listed]
    return templates.page(
        "build.html.j2",
        kernel=kernel,
        trace=trace,
        left=left,
        whole=timeline.whole,
        counts=Counter(outcome.status for outcome in outcomes),
        compiled=compiled(outcomes),
        error=first_error((event for _, event in timeline.events), outcomes),
        ticks=tuple(ticks(timeline.whole)),
        cell_lanes=tuple(_cell_lanes(timeline, on_path)),
        compiler_lanes=[
            Lane(
                name=str(number),
                words=f"compiler {number}: {_counted(len(files), 'file')}",
                bars=tuple(_drawn(bar, timeline, on_path) for bar in files),
            )
            for number, files in enumerate(timeline.compilers, 1)
        ],
        memory=memory_curve(timeline.memory or (), timeline.whole),
        measured=timeline.memory is not None,
        path=tuple(bar for bar in path if id(bar) in listed),
        path_seconds=sum(bar.seconds for bar in path),
        unlisted=len(unlisted),
        unlisted_seconds=sum(bar.seconds for bar in unlisted),
        slowest=slowest_files(timeline.cells, earlier),
        sizes=tuple(wheel_sizes(outcomes)),
        cells=[_section(cell) for cell in timeline.cells if cell.outcome.status != "skipped"],
        skipped=[
            {"label": each.label, "reason": each.reason.removeprefix(f"{each.cell.variant} ")}
            for each in outcomes
            if each.status == "skipped"
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstError:
    """The error of the first cell that failed."""

    label: str
    """The cell."""
    headline: str
    place: str
    """The file and the line in the error; empty without one."""
    source: str
    """The compiled source, if it is known and differs from the place."""
    lines: tuple[str, ...]
    """The first lines of the compiler's errors."""
    help: str
    others: int
    """The number of other failed cells."""


def first_error(events: Iterable[Event], outcomes: Sequence[CellOutcome]) -> FirstError | None:
    """Return the error of the first cell that failed, in the order of events; None if none failed."""
    events = tuple(events)
    failed = {outcome.label: outcome for outcome in outcomes if outcome.status == "failed"}
    if not failed:
        return None
    ended = [event.variant for event in events if event.kind == "done" and event.variant in failed]
    label = next(iter(ended or failed))
    outcome = failed[label]
    message = outcome.reason if outcome.error is None else outcome.error.message
    headline, *lines = (escaped(line.expandtabs()) for line in message.splitlines() or [""])
    matches = (_FAILED.match(event.text) for event in events if event.variant == label)
    source = next((escaped(source_of(match["output"])) for match in matches if match is not None), "")
    place = next(filter(None, map(_place, lines)), "")
    if source and f"/{source}, line " in place:
        place = source + place.rpartition(source)[2]  # without the folder in which the user has it
    return FirstError(
        label=label,
        headline=headline.removeprefix(f"{outcome.cell.variant}: "),
        place=place,
        source="" if place.startswith(f"{source}, line ") else source,
        lines=tuple(lines[:_ERROR_LINES]),
        help="" if outcome.error is None or outcome.error.help is None else escaped(outcome.error.help),
        others=len(failed) - 1,
    )


def _place(line: str) -> str:
    match = _PLACE.match(line)
    if match is None:
        return ""
    number = match["line"] or match["row"] or match["cmake_line"]
    return f"{_BASE.sub('', match['file'] or match['cmake'])}, line {number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    """A bar of the timeline; its place is in percent of the width."""

    x: str
    width: str
    kind: str
    """Its CSS classes."""
    text: str
    title: str
    """Its description, shown by hovering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of bars that do not overlap."""

    name: str
    words: str
    """Its description for screen readers."""
    bars: tuple[DrawnBar, ...]


def _cell_lanes(timeline: Timeline, on_path: Collection[int]) -> Iterator[Lane]:
    """Yield a lane for each cell with steps; `on_path` has the `id` of each bar of the critical path."""
    for cell in timeline.cells:
        label, status = cell.outcome.label, status_of(cell.outcome)
        if cell.steps and cell.outcome.status != "skipped":
            bars = tuple(_drawn(bar, timeline, on_path, hit=cell.outcome.status == "hit") for bar in cell.steps)
            yield Lane(name=f"{label}: {status}", words=f"timeline of {label}, {status}", bars=bars)


def _drawn(bar: Bar, timeline: Timeline, on_path: Collection[int], *, hit: bool = False) -> DrawnBar:
    text = escaped(bar.label)
    said = [f"{text}: {bar.seconds:.1f} s, from {bar.start:.1f} s on", bar.cell, bar.origin]
    if hit:
        kind, text = "step cached", f"store: {text}"
        said.append("the wheel is from the store")
    elif bar.file is None:
        kind = f"step {bar.label if bar.label in KNOWN else 'other'}"
    else:
        cached, name = "cache" in bar.file, text.rpartition("/")[2]
        kind, text = ("file cached", f"cache: {name}") if cached else ("file made", name)
    if id(bar) in on_path:
        kind += " critical"
        said.append("on the critical path")
    x, width = _percent(bar.start, timeline.whole), _percent(bar.seconds, timeline.whole)
    return DrawnBar(x=x, width=width, kind=kind, text=text[:_LONGEST_TEXT], title="; ".join(filter(None, said)))


def ticks(whole: float) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of round times; `whole` is the duration of the build."""
    if whole <= 0:
        return
    power = 10.0 ** math.floor(math.log10(whole / _TICKS))
    step = next(nice * power for nice in (1, 2, 5, 10) if nice * power >= whole / _TICKS)
    for number in range(int(whole / step * 1.001) + 1):  # 0.3 / 0.1 is less than 3
        yield _percent(number * step, whole), f"{number * step:.{max(0, -math.floor(math.log10(step)))}f} s"


def memory_curve(samples: Sequence[TimedSize], whole: float) -> tuple[str, str] | None:
    """Return the memory curve as points of a polygon in 100 x 100, and its maximum in words; None without samples.

    Of samples in the same column, the largest is drawn.
    """
    at, most = max(samples, key=lambda sample: sample[1], default=(0.0, 0))
    if not most or not whole:
        return None
    highest: dict[int, int] = {}
    for time, taken in samples:
        column = min(int(time / whole * _COLUMNS), _COLUMNS)
        highest[column] = max(highest.get(column, 0), taken)
    points = [f"{100 * column / _COLUMNS:g},{100 - 100 * taken / most:.1f}" for column, taken in highest.items()]
    last = points[-1].partition(",")[2]
    return f"0,100 {' '.join(points)} 100,{last} 100,100", f"{size(most)} at most, at {at:.1f} s"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0.0:.3f}%"


def slowest_files(cells: Sequence[CellTimeline], earlier: Earlier) -> tuple[Mapping[str, str], ...]:
    """Return the slowest files of all cells, each with its time in the last build."""
    known = {cell.outcome.label: earlier(cell.outcome) for cell in cells if cell.files}
    files = [(bar, bar.file) for cell in cells for bar in cell.files if bar.file is not None]
    files.sort(key=lambda each: (-each[0].seconds, each[0].start, each[0].cell, each[0].label))
    found = []
    for bar, file in files[:_SLOWEST]:
        last = known[bar.cell].get(file["output"])
        before = "" if last is None else f"{_compiled_in(last):.1f} s"
        if last is not None and "cache" in last:
            before += f", by {escaped(last['writer'])}"
        row = {"seconds": f"{bar.seconds:.1f}", "label": escaped(bar.label), "cell": bar.cell}
        found.append(row | {"before": before, "change": _change(file, last)})
    return tuple(found)


def _compiled_in(file: File) -> float:
    """Return the compile time of a file, on this machine or where its cached object was compiled."""
    return file["saved"] if "cache" in file else file["end"] - file["start"]


def _change(now: File, last: File | None) -> str:
    if "cache" in now:
        return "from a cache"
    if last is None:
        return ""
    before = _compiled_in(last)
    more = _compiled_in(now) - before
    if abs(more) <= max(_SAME, _SAME * before):
        return "about the same"
    share = f" ({100 * more / before:+.0f} %)" if before >= _SAME else ""
    return f"{abs(more):.1f} s {'slower' if more > 0 else 'faster'}{share}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSection:
    """A wheel with its parts, the largest first."""

    label: str
    """The cell."""
    words: str
    """Its size, or why the size is unknown."""
    rows: tuple[tuple[str, str, str], ...] = ()
    """Each part's name, size, and share of the unpacked wheel."""


def wheel_sizes(outcomes: Iterable[CellOutcome]) -> Iterator[WheelSection]:
    """Yield the sizes of each wheel, or the reason if it cannot be read."""
    for outcome in outcomes:
        if outcome.wheel is not None:
            try:
                yield wheel_section(outcome.label, sizes.of(Wheel.read(outcome.wheel)))
            except BuilderError as error:
                yield WheelSection(label=outcome.label, words=escaped(error.message))
            except OSError as error:
                yield WheelSection(label=outcome.label, words=error.strerror or "it cannot be read")


def wheel_section(label: str, found: WheelSizes) -> WheelSection:
    """Return the parts of a wheel: all libraries' device code by architecture, and the other files."""
    whole = sum(file.size for file in found.files)
    parts: Counter[str] = Counter()
    small = []
    for file in found.files:
        for code in file.code:
            parts[code.what] += code.size
        if file.code:
            parts[_REST] += file.rest
        elif file.size >= _NAMED * whole:
            parts[file.name] += file.size
        else:
            small.append(file.size)
    rows = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    if sum(small):
        rows.append((f"{_counted(len(small), 'other file')}", sum(small)))
    return WheelSection(
        label=label,
        words=f"{size(found.packed)}, unpacked {size(whole)}",
        rows=tuple((escaped(what), size(count), f"{100 * count / max(whole, 1):.0f} %") for what, count in rows),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _section(cell: CellTimeline) -> Mapping[str, object]:
    outcome = cell.outcome
    report = outcome.report
    peak = report.peak_memory if report is not None and outcome.status in {"built", "compiled"} else None
    reason, *said = (escaped(line.expandtabs()) for line in outcome.reason.splitlines() or [""])
    return {
        "label": outcome.label,
        "status": status_of(outcome),
        "seconds": outcome.seconds,
        "memory": size(peak) if peak else "",
        "reason": reason.removeprefix(f"{outcome.cell.variant}: "),
        "said": "\n".join(said),
        "notes": tuple(map(escaped, outcome.notes)),
        "warnings": tuple(
            "\n".join(escaped(line.expandtabs()) for line in text.splitlines()) for text in warnings([outcome])
        ),
        "steps": tuple(bar for bar in cell.steps if bar.seconds >= _SHORTEST),
    }
