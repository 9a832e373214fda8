"""Show a build: the steps of its cells while it runs, then its results.

The view is live on a terminal, plain lines elsewhere, and plain lines with annotations on GitHub.
"""

import contextlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from builder import terminal
from builder.cli import screen
from builder.engine.outcome import CellOutcome, Event, Listen
from builder.errors import BuilderError, WrongHashError
from builder.loadtest.load_outcome import LoadState
from builder.report import steps
from builder.wording import columns, duration

_WORDS = {
    "built": "built",
    "compiled": "compiled",
    "hit": "unchanged",
    "skipped": "skipped",
    "stopped": "stopped",
    "failed": "FAILED",
}
_QUIET = 30.0
"""Seconds between the progress lines of a compiling cell, where lines cannot be redrawn."""
_PER_SECOND = 4
_CUT = "..."
_SHORTEST = 8
"""The characters of a cell's name that stay on a narrow terminal."""
_FILE = "  --> "
_WARNINGS = 10
"""The most warnings of compilers that are shown."""
_MORE = "  `builder doctor` says what installs what is missing, `builder matrix --explain` why there is each cell"


@contextlib.contextmanager
def showing(*, environ: Mapping[str, str], quiet: bool, cells: int = 1) -> Iterator[Listen]:
    """Show the events of a build of some cells as fits stderr; any thread may send them."""
    if quiet:
        yield lambda _: None
    elif environ.get("GITHUB_ACTIONS") == "true":
        yield GitHub().show
    elif is_live(environ):
        live = Live(cells)
        with live.drawing:
            yield live.show
    else:
        yield Plain().show


def is_live(environ: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal whose lines can be redrawn."""
    return sys.stderr.isatty() and environ.get("TERM", "").lower() not in screen.PLAIN_TERMINALS


class Plain:
    """Plain lines: one for each step of each cell, and sometimes the number of finished files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}
        """The time of the last line of each cell."""

    def show(self, event: Event) -> None:
        """Write steps, notes and results; skipped cells are in the summary."""
        if event.outcome is not None:
            if event.outcome.status != "skipped":
                self._write(line_of(event.outcome))
            return
        now = time.monotonic()
        # The log of the cell has all lines of ninja; only some are shown here.
        is_due = steps.progress(event) is not None and now - self._told.get(event.variant, 0.0) > _QUIET
        if event.kind != "line" or is_due:
            self._told[event.variant] = now
            self._write(f"{event.variant}: {event.text}")

    def _write(self, text: str) -> None:
        with self._lock:
            screen.err(text)


class GitHub(Plain):
    """Plain lines, and an annotation for each failed cell."""

    def show(self, event: Event) -> None:
        """Write steps, and failures as annotations."""
        super().show(event)
        outcome = event.outcome
        if outcome is not None and outcome.status == "failed":
            title = terminal.attribute(event.variant)
            with self._lock:
                terminal.commands(f"::error title={title}::{terminal.data(outcome.reason)}\n")


class Live:
    """A line for each cell in progress, redrawn at the bottom of a terminal; results stay above."""

    def __init__(self, of: int = 1) -> None:
        from rich.console import Console  # noqa: PLC0415  slow to import, and only a terminal needs it
        from rich.live import Live as Drawing  # noqa: PLC0415

        self._lock = threading.Lock()
        self._cells: dict[str, RunningCell] = {}
        self._done, self._of, self._began = 0, of, time.monotonic()
        self._console = Console(stderr=True, highlight=False)
        self.drawing = Drawing(
            console=self._console, get_renderable=self._drawn, refresh_per_second=_PER_SECOND, transient=True
        )
        """Draws the lines while it is entered."""

    def show(self, event: Event) -> None:
        """Take in an event, which the next frame shows; write a result at once."""
        from rich.text import Text  # noqa: PLC0415  as above

        now = time.monotonic()
        with self._lock:
            if event.outcome is None:
                cell = self._cells.get(event.variant) or RunningCell(label=terminal.safe(event.variant), began=now)
                self._cells[event.variant] = cell.after(event, now=now)
            else:
                self._cells.pop(event.variant, None)
                self._done += 1
        if event.outcome is not None and event.outcome.status != "skipped":
            line = screen.fitted(line_of(event.outcome), sys.stderr, colored=screen.has_color(sys.stderr))
            self._console.print(Text.from_ansi(line), soft_wrap=True)

    def _drawn(self) -> Any:
        from rich.text import Text  # noqa: PLC0415

        with self._lock:
            cells, done = tuple(self._cells.values()), self._done
        now = time.monotonic()
        shown = lines(cells, now=now, width=self._console.width)
        shown += overall(done, self._of, now - self._began)
        return Text("\n".join(shown), no_wrap=True, overflow="crop")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCell:
    """The state of a cell in progress."""

    label: str
    began: float
    step: str = ""
    text: str = ""
    """The step in words."""
    files: tuple[int, int] | None = None
    """The number of finished files, and of all files."""
    last: str = ""
    """The last finished file."""
    expected: float | None = None
    """The seconds of the last build, counted from the start of compiling."""

    def after(self, event: Event, *, now: float) -> "RunningCell":
        """Return the state after an event."""
        found = steps.progress(event)
        if found is not None:
            done, of, what = found
            last = PurePosixPath(what.rpartition(" ")[2]).name.removesuffix(".o")
            last = last if "." in last else ""  # steps that make no file end with other words
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
        """Return the time so far, in words."""
        return duration(now - self.began)

    def of_expected(self, now: float) -> str:
        """Return the time so far with the time of the last build, or alone if it is longer."""
        if self.expected is None or now - self.began > self.expected:
            return self.elapsed(now)
        return f"{self.elapsed(now)} of about {duration(self.expected)}"


def overall(done: int, of: int, seconds: float) -> tuple[str, ...]:
    """Return a line about a whole build; a build of one cell needs none."""
    return (f"{done} of {of} cells  {duration(seconds)}",) if of > 1 else ()


def lines(cells: Iterable[RunningCell], *, now: float, width: int) -> tuple[str, ...]:
    """Return a line for each working cell, and one for all waiting cells, cut to `width`."""
    listed = tuple(cells)
    waiting = [cell for cell in listed if cell.step == steps.WAITING]
    rows = [cell for cell in listed if cell.step != steps.WAITING]
    rows += waiting if len(waiting) == 1 else [replace(each, label=f"{len(waiting)} cells") for each in waiting[:1]]
    layouts = (
        [(cell.label, cell.text, cell.of_expected(now), cell.last) for cell in rows],
        [(cell.label, cell.text, cell.of_expected(now)) for cell in rows],
        [(cell.label, cell.short, cell.of_expected(now)) for cell in rows],
        [(cell.label, cell.short, cell.elapsed(now)) for cell in rows],
    )
    shown: list[str] = []
    for layout in layouts:
        shown = columns(layout)
        if max(map(len, shown), default=0) <= width:
            return tuple(shown)
    # Names of cells are shortened at the end, where they differ least.
    over = max(map(len, shown)) - width
    most = max(max(len(cell.label) for cell in rows) - over, _SHORTEST)
    cut = [
        (label if len(label) <= most else label[: most - len(_CUT)] + _CUT, *others) for label, *others in layouts[-1]
    ]
    return tuple(line[:width] for line in columns(cut))


def _line(text: str) -> str:
    return terminal.safe(" ".join(text.split()))


def line_of(outcome: CellOutcome) -> str:
    """Return the result of a cell, in a line."""
    variant, word = outcome.label, _WORDS[outcome.status]
    if outcome.wheel is not None and outcome.report is not None:
        test = outcome.report.load_test
        noted = "" if test.outcome is LoadState.LOADED else f"; load test: {test.words}"
        noted += "; unsandboxed" if _is_unsandboxed(outcome) else ""
        return f"{variant}: {word} in {outcome.seconds:.1f} s ({outcome.reason}) -> {outcome.wheel.name}{noted}"
    return f"{variant}: {word}: {_why(outcome)}"


def _why(outcome: CellOutcome) -> str:
    said = outcome.reason.splitlines()[0]
    return said.removeprefix(f"{outcome.cell.variant} ").removeprefix(f"{outcome.cell.variant}: ")


def skipped(outcomes: Iterable[CellOutcome]) -> tuple[str, ...]:
    """Return a line for each reason for skipped cells, and a line with commands that tell more."""
    reasons: dict[str, list[CellOutcome]] = {}
    for outcome in outcomes:
        if outcome.status == "skipped":
            reasons.setdefault(_why(outcome), []).append(outcome)
    lines = tuple(
        line_of(found[0]) if len(found) == 1 else f"{len(found)} cells skipped: {why}" for why, found in reasons.items()
    )
    return (*lines, _MORE) if len(lines) > 1 else lines


def _is_unsandboxed(outcome: CellOutcome) -> bool:
    return outcome.report is not None and outcome.report.sandbox is False


def _failed(failures: Sequence[tuple[CellOutcome, BuilderError]]) -> Iterator[str]:
    """Yield each error once, with all its cells and all files that it names."""
    alike: dict[tuple[str, str], list[tuple[str, Sequence[str]]]] = {}
    texts = [_without_cell(outcome, error) for outcome, error in failures]
    for (outcome, error), text in zip(failures, texts, strict=True):
        # The cell and its log are named where nothing else failed alike.
        before, files, after = _parts((text if texts.count(text) > 1 else str(error)).splitlines())
        alike.setdefault(("\n".join(before), "\n".join(after)), []).append((outcome.label, files))
    for (before_files, after_files), found in alike.items():
        lines = before_files.split("\n")
        if len(found) > 1:
            lines.insert(1, f"  {len(found)} cells: {', '.join(label for label, _ in found)}")
        lines += dict.fromkeys(file for _, files in found for file in files)
        yield "\n".join((f"error: {lines[0]}", *lines[1:], *([after_files] if after_files else [])))


def _without_cell(outcome: CellOutcome, error: BuilderError) -> str:
    """Return an error without the name of its cell, and with the folder of the logs in place of its log."""
    text = str(error).removeprefix(f"{outcome.cell.variant}: ")
    return text if outcome.log is None else text.replace(f"log: {outcome.log}", f"logs: {outcome.log.parent}")


def _parts(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Split an error into the lines before its list of files, that list, and the lines after it."""
    named = [number for number, line in enumerate(lines) if line.startswith(_FILE)]
    if not named or named[-1] - named[0] >= len(named):  # a line between two files belongs to the first
        return lines, (), ()
    return lines[: named[0]], lines[named[0] : named[-1] + 1], lines[named[-1] + 1 :]


def summary(outcomes: Sequence[CellOutcome]) -> str:
    """Return the summary of a build: the reasons of skipped cells, each error as a whole, notes, and counts.

    For several kernels, a table of counts follows.
    """
    failures = [(each, each.error) for each in outcomes if each.status == "failed" and each.error is not None]
    # Last, so that it is seen: an index serves files that do not match the pins.
    failures.sort(key=lambda failure: isinstance(failure[1], WrongHashError))
    parts = [*skipped(outcomes), *_failed(failures)]
    errors = [error for _, error in failures]
    wrong = sum(isinstance(error, WrongHashError) for error in errors)
    if wrong:
        cells = "1 cell" if wrong == 1 else f"{wrong} cells"
        parts.append(f"error: NOT WHAT WAS PINNED: {cells} got a file with a wrong hash; trust nothing from there")
    parts += [f"note: {note}" for outcome in outcomes for note in outcome.notes]
    warned = steps.warnings(outcomes)
    parts += warned[:_WARNINGS]
    if len(warned) > _WARNINGS:
        logs = dict.fromkeys(str(each.log) for each in outcomes if each.report is not None and each.report.warnings)
        more = len(warned) - _WARNINGS
        parts.append(f"{more} more warning{'s' * (more > 1)}: {', '.join(logs)}")
    parts += steps.compiled(outcomes)
    counts = {word: sum(outcome.status == status for outcome in outcomes) for status, word in _WORDS.items()}
    open_ = sum(map(_is_unsandboxed, outcomes))
    counts["unsandboxed"] = open_
    counts["warning" if len(warned) == 1 else "warnings"] = len(warned)
    parts.append(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if open_:
        parts.append(
            "note: unsandboxed: kernels could read and write what you can; 'builder doctor' says what is missing"
        )
    kernels = dict.fromkeys(each.kernel for each in outcomes if each.kernel)
    if kernels:
        words = [word for status, word in _WORDS.items() if any(each.status == status for each in outcomes)]
        rows = [("kernel", *words)]
        for kernel in kernels:
            found = Counter(_WORDS[each.status] for each in outcomes if each.kernel == kernel)
            rows.append((kernel, *(str(found[word] or "-") for word in words)))
        parts += columns(rows)
    return "\n".join(parts)
