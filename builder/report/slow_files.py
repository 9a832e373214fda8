"""The slowest files of a build, each beside the last build of its cell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from builder.engine.outcome import CellOutcome
from builder.make.ninja_log import File
from builder.report.timeline import CellTimeline
from builder.wording import escaped

_MOST = 20
_SAME = 0.1
"""Seconds, and the share of the time, within which two times are taken to be the same."""

Earlier = Callable[[CellOutcome], Mapping[str, File]]
"""What the build of a cell before this one made, by path: as much of it as is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFile:
    """A file, what it took, and how that compares."""

    label: str
    cell: str
    seconds: float
    before: str
    """What it took in the last build; empty where that is not known."""
    change: str


def of(cells: Sequence[CellTimeline], earlier: Earlier) -> tuple[SlowFile, ...]:
    """Return the slowest files of all cells, the slowest first."""
    known = {cell.outcome.label: earlier(cell.outcome) for cell in cells if cell.files}
    bars = [bar for cell in cells for bar in cell.files]
    bars.sort(key=lambda bar: (-bar.seconds, bar.start, bar.cell, bar.label))
    found = []
    for bar in bars[:_MOST]:
        last = known[bar.cell].get(bar.file["output"]) if bar.file is not None else None
        found.append(
            SlowFile(
                label=escaped(bar.label),
                cell=bar.cell,
                seconds=bar.seconds,
                before="" if last is None else _took(last),
                change=_change(bar.file, last),
            )
        )
    return tuple(found)


def compiled_in(file: File) -> float:
    """Return the seconds that the compiler of a file took, here or where its cache has it from."""
    return file["saved"] if "cache" in file else file["end"] - file["start"]


def _took(last: File) -> str:
    seconds = f"{compiled_in(last):.1f} s"
    return f"{seconds}, by {escaped(last['writer'])}" if "cache" in last else seconds


def _change(now: File | None, last: File | None) -> str:
    if now is None or "cache" in now:
        return "" if now is None else "from a cache"
    if last is None:
        return ""
    seconds, before = compiled_in(now), compiled_in(last)
    more = seconds - before
    if abs(more) <= max(_SAME, _SAME * before):
        return "about the same"
    share = f" ({100 * more / before:+.0f} %)" if before >= _SAME else ""
    return f"{abs(more):.1f} s {'slower' if more > 0 else 'faster'}{share}"
