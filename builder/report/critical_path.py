"""The critical path of a build: what the end had to wait for, one thing after the other."""

from collections.abc import Iterable, Mapping, Sequence

from builder.report.steps import COMPILING, WAITING
from builder.report.timeline import Bar, CellTimeline, Timeline

_CLOSE = 0.1
"""Seconds within which one thing is taken to have begun because another ended: events and logs are not more exact."""


def of(timeline: Timeline) -> tuple[Bar, ...]:
    """Return the steps and files on the critical path, in their order.

    From the last step of the last cell it goes back, always to what ended last before something could begin: the step
    before, the file whose end made a compiler free or gave the linker its last object, a cell that was waited for.
    """
    ended = [cell for cell in timeline.cells if cell.steps]
    if not ended:
        return ()
    by_label = {cell.outcome.label: cell for cell in ended}
    files = timeline.files
    last = max(ended, key=lambda cell: cell.steps[-1].end)
    path: list[Bar] = []
    bar: Bar | None = _entered(last, last.steps[-1])
    while bar is not None and not any(bar is each for each in path):
        before = _before(bar, by_label, files)
        if not (bar.label == WAITING and before is not None and before.cell != bar.cell):
            path.append(bar)
        bar = before
    return tuple(reversed(path))


def _before(bar: Bar, cells: Mapping[str, CellTimeline], files: Sequence[Bar]) -> Bar | None:
    """Return what ended before something could begin; None at the beginning of the build."""
    cell = cells[bar.cell]
    if bar.file is not None:
        return _before_file(bar, files) or _step_before(COMPILING, cell)
    if bar.label == WAITING and (other := _waited_for(bar, cells.values())) is not None:
        return other
    number = cell.steps.index(bar)
    return None if number == 0 else _entered(cell, cell.steps[number - 1])


def _before_file(bar: Bar, files: Sequence[Bar]) -> Bar | None:
    """Return the file that ended last before another began: of the same cell, unless that was some time before."""
    ended = [each for each in files if each.end <= bar.start + _CLOSE and each.start < bar.start]
    mine = [each for each in ended if each.cell == bar.cell]
    near = [each for each in ended if each.end >= bar.start - _CLOSE]
    found = [each for each in near if each.cell == bar.cell] or near or mine
    return max(found, key=_end, default=None)


def _step_before(label: str, cell: CellTimeline) -> Bar | None:
    numbers = [number for number, step in enumerate(cell.steps) if step.label == label]
    return cell.steps[numbers[-1] - 1] if numbers and numbers[-1] else None


def _waited_for(bar: Bar, cells: Iterable[CellTimeline]) -> Bar | None:
    """Return what ended in another cell when the waiting did."""
    if bar.seconds <= _CLOSE:
        return None
    others = [each for cell in cells for each in (*cell.files, *cell.steps) if each.cell != bar.cell]
    near = [each for each in others if abs(each.end - bar.end) <= _CLOSE and bar.start < each.end]
    found = [each for each in near if each.start < bar.end and each.label not in {WAITING, COMPILING}]
    return max(found, key=_end, default=None)


def _entered(cell: CellTimeline, step: Bar) -> Bar:
    """Return a step, or the file with which compiling ended."""
    files = [bar for bar in cell.files if bar.end <= step.end + _CLOSE]
    return max(files, key=_end) if step.label == COMPILING and files else step


def _end(bar: Bar) -> tuple[float, float]:
    return bar.end, bar.start
