"""The first error of a build, as its page shows it: whose it is, in which file, and what the compiler said of it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from builder.engine.outcome import CellOutcome, Event
from builder.report.steps import source_of
from builder.wording import escaped

_LINES = 20
_PLACE = re.compile(
    r"(?P<file>[^\s:(][^:(]*)(?::(?P<line>\d+)(?::\d+)?|\((?P<row>\d+)\)): (?:fatal |catastrophic )?error"
)
"""How GCC, Clang and nvcc begin the line of an error."""
_CMAKE = re.compile(r"CMake Error at (?P<file>[^:]+):(?P<line>\d+)")
_FAILED = re.compile(r"FAILED: (?:\[code=\d+\] )?(?P<output>\S+)")
"""How ninja names what could not be made."""
_BASE = re.compile(r"^.*/src/(?=[^/])")
"""Where the project lies while it is built: /tmp/builder/src, or src in a folder of the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstError:
    """What failed first."""

    label: str
    """The cell."""
    headline: str
    place: str
    """The file and the line that it names; empty where it names none."""
    source: str
    """What was compiled, if that is known and not the place."""
    lines: tuple[str, ...]
    """What the compiler said, from its first error on."""
    help: str
    others: int
    """How many more cells failed."""


def first_error(events: Iterable[Event], outcomes: Sequence[CellOutcome]) -> FirstError | None:
    """Return what failed first, by the order of the events; None where nothing failed."""
    events = tuple(events)
    failed = {outcome.label: outcome for outcome in outcomes if outcome.status == "failed"}
    if not failed:
        return None
    ended = [event.variant for event in events if event.kind == "done" and event.variant in failed]
    label = next(iter(ended or failed))
    outcome = failed[label]
    message = outcome.reason if outcome.error is None else outcome.error.message
    headline, *lines = (escaped(line.expandtabs()) for line in message.splitlines() or [""])
    found = next((line for line in events if line.variant == label and _FAILED.match(line.text)), None)
    match = None if found is None else _FAILED.match(found.text)
    source = "" if match is None else escaped(source_of(match["output"]))
    place = next(filter(None, map(_place, lines)), "")
    return FirstError(
        label=label,
        headline=headline.removeprefix(f"{outcome.cell.variant}: "),
        place=place,
        source="" if place.startswith(f"{source}, line ") else source,
        lines=tuple(lines[:_LINES]),
        help="" if outcome.error is None or outcome.error.help is None else escaped(outcome.error.help),
        others=len(failed) - 1,
    )


def _place(line: str) -> str:
    match = _PLACE.match(line) or _CMAKE.match(line)
    if match is None:
        return ""
    named = match.groupdict()
    return f"{_BASE.sub('', match['file'])}, line {named.get('line') or named.get('row')}"
