"""The output of a build: steps and counts of files while it runs, then what was built, skipped and failed.

It is live on a terminal, plain lines elsewhere, and groups and annotations on GitHub.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from builder import terminal
from builder.engine.outcome import CellOutcome, Event
from builder.errors import BuilderError, WrongHashError
from builder.loadtest.outcome import LoadState
from builder.report import steps
from builder.wording import columns

_WORDS = {
    "built": "built",
    "compiled": "compiled",
    "hit": "unchanged",
    "skipped": "skipped",
    "stopped": "stopped",
    "failed": "FAILED",
}


_PLAIN_TERMINALS = frozenset({"dumb", "unknown"})
"""Values of TERM for which nothing is redrawn: the cursor cannot be moved, or a reader speaks each line once."""
_QUIET = 30.0
"""Seconds after which a cell that compiles says how far it is, where its lines cannot be redrawn."""
_FILE = "  --> "
_MORE = "  `builder doctor` says what installs what is missing, `builder matrix --explain` why there is each cell"


class View(Protocol):
    """Something that shows events."""

    def start(self) -> None:
        """Begin to show."""

    def stop(self) -> None:
        """End it, whatever happened."""

    def show(self, event: Event) -> None:
        """Show an event; called from any thread."""


def choose(*, environ: Mapping[str, str], quiet: bool) -> View:
    """Return the view that fits where stderr goes."""
    if quiet:
        return Plain(quiet=True)
    if environ.get("GITHUB_ACTIONS") == "true":
        return GitHub()
    return Live() if is_live(environ) else Plain()


def is_live(environ: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal whose lines can be redrawn."""
    return sys.stderr.isatty() and environ.get("TERM", "").lower() not in _PLAIN_TERMINALS


class Plain:
    """A line for each step of each cell, and now and then how many files are done."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._silent = quiet
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}
        """When each cell last had a line."""

    def start(self) -> None:
        """Do nothing: a plain view keeps nothing open."""

    def stop(self) -> None:
        """Do nothing: a plain view keeps nothing open."""

    def show(self, event: Event) -> None:
        """Write steps, notes and ends; what was skipped is in the summary."""
        if self._silent or _is_skipped(event):
            return
        if event.outcome is not None:
            self._write(line_of(event.outcome))
        elif event.kind != "line" or self._is_due(event):
            self._told[event.variant] = time.monotonic()
            self._write(f"{event.variant}: {event.text}")

    def _is_due(self, event: Event) -> bool:
        """Whether a line of ninja is shown: the log of the cell has all of them."""
        return steps.progress(event) is not None and time.monotonic() - self._told.get(event.variant, 0.0) > _QUIET

    def _write(self, text: str) -> None:
        with self._lock:
            terminal.err(text)


class GitHub(Plain):
    """Plain lines, and an annotation for each cell that failed."""

    def show(self, event: Event) -> None:
        """Write steps, and failures as annotations."""
        super().show(event)
        outcome = event.outcome
        if outcome is not None and outcome.status == "failed":
            title = terminal.attribute(event.variant)
            with self._lock:
                terminal.command(f"::error title={title}::{terminal.data(outcome.reason)}")


class Live:
    """A line for each cell that is being built, redrawn in place; ended cells stay above them."""

    def __init__(self) -> None:
        from builder.cli.live import Screen  # noqa: PLC0415  only a terminal needs it

        self._screen = Screen()

    def start(self) -> None:
        """Take the bottom of the terminal."""
        self._screen.start()

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self._screen.stop()

    def show(self, event: Event) -> None:
        """Take an event in; the next frame shows it."""
        self._screen.show(event)
        if event.outcome is not None and not _is_skipped(event):
            self._screen.print(line_of(event.outcome))


def line_of(outcome: CellOutcome) -> str:
    """Say in a line what became of a cell."""
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


def _is_skipped(event: Event) -> bool:
    return event.outcome is not None and event.outcome.status == "skipped"


def skipped(outcomes: Iterable[CellOutcome]) -> tuple[str, ...]:
    """Say what was skipped: a line for each reason, with the cell or how many there are, and what says more."""
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


def _failed(failures: Iterable[tuple[CellOutcome, BuilderError]]) -> Iterator[str]:
    """Yield each error once, with all the cells that ended by it and all the files that they name."""
    alike: dict[tuple[str, str], list[tuple[str, Sequence[str]]]] = {}
    for outcome, error in failures:
        before, files, after = _parts(str(error).splitlines())
        alike.setdefault(("\n".join(before), "\n".join(after)), []).append((outcome.label, files))
    for (before_files, after_files), found in alike.items():
        lines = before_files.split("\n")
        if len(found) > 1:
            lines.insert(1, f"  {len(found)} cells: {', '.join(label for label, _ in found)}")
        lines += dict.fromkeys(file for _, files in found for file in files)
        yield "\n".join((f"error: {lines[0]}", *lines[1:], *([after_files] if after_files else [])))


def _parts(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Return the lines of an error before the files that it lists, these lines, and those after them."""
    named = [number for number, line in enumerate(lines) if line.startswith(_FILE)]
    if not named or named[-1] - named[0] >= len(named):  # what is between two says something of the first
        return lines, (), ()
    return lines[: named[0]], lines[named[0] : named[-1] + 1], lines[named[-1] + 1 :]


def summary(outcomes: tuple[CellOutcome, ...]) -> str:
    """Say what was built, skipped (why) and failed; a failed cell's own first error comes whole."""
    failures = [(each, each.error) for each in outcomes if each.status == "failed" and each.error is not None]
    # Last, where it is seen: somebody serves what was not pinned.
    failures.sort(key=lambda failure: isinstance(failure[1], WrongHashError))
    parts = [*skipped(outcomes), *_failed(failures)]
    errors = [error for _, error in failures]
    wrong = sum(isinstance(error, WrongHashError) for error in errors)
    if wrong:
        cells = "1 cell" if wrong == 1 else f"{wrong} cells"
        parts.append(f"error: NOT WHAT WAS PINNED: {cells} got a file with a wrong hash; trust nothing from there")
    parts += [f"note: {note}" for outcome in outcomes for note in outcome.notes]
    parts += steps.compiled(outcomes)
    counts = {word: sum(outcome.status == status for outcome in outcomes) for status, word in _WORDS.items()}
    open_ = sum(map(_is_unsandboxed, outcomes))
    counts["unsandboxed"] = open_
    parts.append(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if open_:
        parts.append(
            "note: unsandboxed: kernels could read and write what you can; 'builder doctor' says what is missing"
        )
    return "\n".join(parts)


def summary_of_several(outcomes: tuple[CellOutcome, ...]) -> str:
    """Say the same of several kernels, and count what became of the cells of each."""
    words = [word for status, word in _WORDS.items() if any(each.status == status for each in outcomes)]
    rows = [("kernel", *words)]
    for kernel in dict.fromkeys(each.kernel for each in outcomes):
        counts = Counter(_WORDS[each.status] for each in outcomes if each.kernel == kernel)
        rows.append((kernel, *(str(counts[word] or "-") for word in words)))
    return "\n".join((summary(outcomes), *columns(rows)))
