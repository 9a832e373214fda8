"""The drawing of a build: lanes of bars, in percent of its width, with a text and what is said when one hovers."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from builder.report import from_caches
from builder.report.memory import MemorySample
from builder.report.steps import ORDER
from builder.report.timeline import Bar, Timeline
from builder.wording import escaped, size

_NICE = (1, 2, 5, 10)
_TICKS = (6, 24, 96)
"""The most ticks of the whole drawing, at each magnification from which there is room for more."""
_COLUMNS = 400
"""Most columns of the memory."""
_LONGEST = 60
"""Letters of a bar's text: what does not fit is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    """A bar as the page has it."""

    x: str
    width: str
    kind: str
    """Its classes: what it is, and whether it is from a cache or on the critical path."""
    text: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of bars, none of which overlaps another."""

    name: str
    words: str
    """What is in it, for those who do not see it."""
    bars: tuple[DrawnBar, ...]
    status: str = ""
    """How its cell ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark of the time."""

    x: str
    text: str
    level: int
    """The magnification from which it is shown: 0 for always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What was taken during a part of the build."""

    x: str
    width: str
    y: str
    height: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDrawing:
    """The memory over time."""

    words: str
    """The most of it."""
    columns: tuple[Column, ...]


def cell_lanes(timeline: Timeline, path: Collection[int]) -> Iterator[Lane]:
    """Yield a lane for each cell that did something, with its steps.

    `path` has the `id` of each bar of the critical path: two bars may be equal.
    """
    for cell in timeline.cells:
        if cell.steps and cell.outcome.status != "skipped":
            hit = cell.outcome.status == "hit"
            bars = tuple(_drawn(bar, timeline, path, hit=hit) for bar in cell.steps)
            status, label = from_caches.status_of(cell.outcome), cell.outcome.label
            yield Lane(name=label, words=f"timeline of {label}, {status}", bars=bars, status=status)


def compiler_lanes(timeline: Timeline, path: Collection[int]) -> Iterator[Lane]:
    """Yield a lane for each compiler that ran beside others, with its files."""
    for number, files in enumerate(timeline.compilers, 1):
        bars = tuple(_drawn(bar, timeline, path) for bar in files)
        noun = "file" if len(bars) == 1 else "files"
        yield Lane(name=str(number), words=f"compiler {number}: {len(bars)} {noun}", bars=bars)


def memory(samples: Sequence[MemorySample], whole: float) -> MemoryDrawing | None:
    """Return the memory as columns that stand beside each other: in each the most of its time; None without any."""
    most = max(samples, key=lambda sample: sample.size, default=None)
    if most is None or not most.size or not whole:
        return None
    highest: dict[int, int] = {}
    for sample in samples:
        number = min(int(sample.at / whole * _COLUMNS), _COLUMNS - 1)
        highest[number] = max(highest.get(number, 0), sample.size)
    numbers = sorted(highest)
    columns = tuple(
        Column(
            x=percent(number, _COLUMNS),
            width=percent(after - number, _COLUMNS),
            y=percent(most.size - highest[number], most.size),
            height=percent(highest[number], most.size),
            title=f"{size(highest[number])} at {number * whole / _COLUMNS:.1f} s",
        )
        for number, after in zip(numbers, [*numbers[1:], _COLUMNS], strict=True)
    )
    return MemoryDrawing(words=f"{size(most.size)} at most, at {most.at:.1f} s", columns=columns)


def ticks(whole: float) -> Iterator[Tick]:
    """Yield marks of the time, the fewest first."""
    known: set[str] = set()
    for level, most in enumerate(_TICKS):
        step = _step(whole / most) if whole > 0 else 0.0
        digits = max(0, -math.floor(math.log10(step))) if step else 0
        for number in range(int(whole / step) + 1 if step else 0):
            x = percent(number * step, whole)
            if x not in known:
                known.add(x)
                yield Tick(x=x, text=f"{number * step:.{digits}f} s", level=level)


def percent(part: float, whole: float) -> str:
    """Return a part of the width of a drawing."""
    return f"{100 * part / whole if whole else 0.0:.3f}%"


def made(bar: Bar) -> str:
    """Say how a file came to be."""
    if bar.file is None:
        return ""
    if "cache" not in bar.file:
        return "compiled here" if bar.file["output"].endswith(".o") else "made here"
    cache = from_caches.name_of(bar.file["cache"])
    return escaped(f"not compiled: from {cache}, compiled by {bar.file['writer']} in {bar.file['saved']:.1f} s")


def _step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, … that is not less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(nice * power for nice in _NICE if nice * power >= least or nice == _NICE[-1])


def _drawn(bar: Bar, timeline: Timeline, path: Collection[int], *, hit: bool = False) -> DrawnBar:
    label, critical = escaped(bar.label), id(bar) in path
    said = [f"{label}: {bar.seconds:.1f} s, from {bar.start:.1f} s on", bar.cell]
    if hit:
        kinds, text = ["step", "cached"], f"store: {label}"
        said.append("the wheel is from the store")
    elif bar.file is None:
        kinds, text = ["step", bar.label if bar.label in ORDER else "other"], label
    else:
        name, cached = label.rpartition("/")[2], "cache" in bar.file
        kinds, text = (["file", "cached"], f"cache: {name}") if cached else (["file", "made"], name)
        said.append(made(bar))
    if critical:
        kinds.append("critical")
        said.append("on the critical path")
    return DrawnBar(
        x=percent(bar.start, timeline.whole),
        width=percent(bar.seconds, timeline.whole),
        kind=" ".join(kinds),
        text=text[:_LONGEST],
        title="; ".join(said),
    )
