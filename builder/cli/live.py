"""The cells that are being built, a line for each, redrawn in place on a terminal of any width."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from builder import terminal
from builder.engine.outcome import Event
from builder.report import steps

_WAITING = "waiting"
_GAP = "  "
_CUT = "..."
_SHORTEST = 8
"""Characters of a cell's name that stay, however narrow the terminal."""
_PER_SECOND = 4
_MINUTE = 60
_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCell:
    """What a cell does at this moment."""

    label: str
    began: float
    step: str = ""
    text: str = ""
    """The step in words."""
    files: tuple[int, int] | None = None
    """How many files are done, and of how many."""
    last: str = ""
    """The file that was done last."""
    expected: float | None = None
    """Seconds that the last build took from when it began to compile."""

    def after(self, event: Event, *, now: float) -> "RunningCell":
        """Return the cell after an event of it."""
        found = steps.progress(event)
        if found is not None:
            done, of, what = found
            last = PurePosixPath(what.rpartition(" ")[2]).name.removesuffix(".o")
            last = last if "." in last else ""  # steps that make no file end with any word
            text = f"compiling, {done} of {of} files"
            return replace(self, step=steps.step_of(event), text=text, files=(done, of), last=terminal.safe(last))
        step = steps.step_of(event)
        if event.kind == "note":
            return replace(self, text=_line(event.text))
        if not step:
            return self
        text = step if step == "starting" else _line(event.text) if event.kind == "step" else step
        began = self.began if event.expected is None else now
        expected = event.expected or self.expected
        return replace(self, began=began, step=step, text=text, files=None, last="", expected=expected)

    @property
    def short(self) -> str:
        """The step in a word, or the count of files."""
        return self.step or self.text if self.files is None else f"{self.files[0]}/{self.files[1]}"

    def elapsed(self, now: float) -> str:
        """Say how long it takes already."""
        return duration(now - self.began)

    def of_expected(self, now: float) -> str:
        """Say how long it takes already, and how long the last build took, until it takes longer."""
        if self.expected is None or now - self.began > self.expected:
            return self.elapsed(now)
        return f"{self.elapsed(now)} of about {duration(self.expected)}"


def duration(seconds: float) -> str:
    """Return a time as a person says it."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def lines(cells: Iterable[RunningCell], *, now: float, width: int) -> tuple[str, ...]:
    """Return a line for each cell that works, and one for those that wait; as much as fits is told of each."""
    listed = tuple(cells)
    waiting = [cell for cell in listed if cell.step == _WAITING]
    rows = [cell for cell in listed if cell.step != _WAITING]
    rows += waiting if len(waiting) == 1 else [replace(each, label=f"{len(waiting)} cells") for each in waiting[:1]]
    layouts = (
        [(cell.label, cell.text, cell.of_expected(now), cell.last) for cell in rows],
        [(cell.label, cell.text, cell.of_expected(now)) for cell in rows],
        [(cell.label, cell.short, cell.of_expected(now)) for cell in rows],
        [(cell.label, cell.short, cell.elapsed(now)) for cell in rows],
    )
    fitting = (laid for layout in layouts if _widest(laid := _aligned(layout)) <= width)
    return next(fitting, None) or _narrow(layouts[-1], width)


def _narrow(rows: Sequence[tuple[str, ...]], width: int) -> tuple[str, ...]:
    """Shorten the names of cells, whose ends differ least."""
    over = _widest(_aligned(rows)) - width
    longest = max((len(label) for label, *_ in rows), default=0)
    most = max(longest - over, _SHORTEST)
    cut = [(_shortened(label, most), *others) for label, *others in rows]
    return tuple(line[:width] for line in _aligned(cut))


def _shortened(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - len(_CUT)] + _CUT


def _aligned(rows: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return tuple(_GAP.join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _widest(rows: Sequence[str]) -> int:
    return max(map(len, rows), default=0)


def _line(text: str) -> str:
    return terminal.safe(" ".join(text.split()))


class Screen:
    """The lines at the bottom of a terminal; what is printed meanwhile stays above them."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  slow to import, and only a terminal needs it
        from rich.live import Live  # noqa: PLC0415

        self._lock = threading.Lock()
        self._cells: dict[str, RunningCell] = {}
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(
            console=self._console, get_renderable=self._drawn, refresh_per_second=_PER_SECOND, transient=True
        )

    def start(self) -> None:
        """Take the bottom of the terminal."""
        self._live.start()

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self._live.stop()

    def show(self, event: Event) -> None:
        """Take an event in; the next frame shows it."""
        now = time.monotonic()
        with self._lock:
            if event.outcome is None:
                cell = self._cells.get(event.variant) or RunningCell(label=terminal.safe(event.variant), began=now)
                self._cells[event.variant] = cell.after(event, now=now)
            else:
                self._cells.pop(event.variant, None)

    def print(self, line: str) -> None:
        """Write a line that stays."""
        self._console.print(terminal.safe(line), markup=False, soft_wrap=True)

    def _drawn(self) -> Any:
        from rich.text import Text  # noqa: PLC0415

        with self._lock:
            cells = tuple(self._cells.values())
        shown = lines(cells, now=time.monotonic(), width=self._console.width)
        return Text("\n".join(shown), no_wrap=True, overflow="crop")
