"""The format for people: each problem with its line quoted, and a count at the end."""

from collections import Counter
from collections.abc import Iterator, Sequence

import click

from builder.config.text import one_line, plain, shown
from builder.lint.report import SEVERITIES, CheckReport, Located

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan", "place": "blue", "help": "green", "clean": "green"}


_MOST_ALIKE = 3
"""Notes of one code that are shown; of more, the first stands for all."""


def render(report: CheckReport, *, color: bool = False, every: bool = False) -> str:
    """Return the problems, a blank line between two, and a summary; errors are next to it.

    Of many notes of one code the first stands for all, unless `every` one is asked for.
    """
    parts = _problems(report, color=color, every=every)
    return "\n\n".join([*parts, summary(report, color=color)]) + "\n"


def render_all(reports: Sequence[CheckReport], *, color: bool = False, every: bool = False) -> str:
    """Return the problems of several kernels, a line for each that has some, and what they have together."""
    parts = [part for report in reports for part in _problems(report, color=color, every=every)]
    lines = [summary(report, color=color) for report in reports if report.found]
    lines.append(_together(reports, color=color))
    return "\n\n".join([*parts, "\n".join(lines)]) + "\n"


def _problems(report: CheckReport, *, color: bool, every: bool) -> Iterator[str]:
    """Yield notes, then warnings, then errors, each by position."""
    notes = Counter(located.problem.code for located in report.found if located.problem.severity == "note")
    folded = set() if every else {code for code, count in notes.items() if count > _MOST_ALIKE}
    told: set[str] = set()
    for located in sorted(report.found, key=lambda each: -SEVERITIES.index(each.problem.severity)):
        code = located.problem.code
        if located.problem.severity != "note" or code not in folded:
            yield problem(located, color=color)
        elif code not in told:
            told.add(code)
            yield f"{problem(located, color=color)}\n  and {notes[code] - 1} more of {code}: --all shows them"


def _together(reports: Sequence[CheckReport], *, color: bool) -> str:
    paint = _paint if color else plain
    counts = {severity: sum(report.count(severity) for report in reports) for severity in SEVERITIES}
    whose = {severity: sum(report.count(severity) > 0 for report in reports) for severity in SEVERITIES}
    said = [
        f"{count} {severity}{'s' if count != 1 else ''} in {whose[severity]}"
        for severity, count in counts.items()
        if count
    ]
    worst = next((severity for severity, count in counts.items() if count), "clean")
    kernels = f"{len(reports)} kernel{'s' if len(reports) != 1 else ''}"
    return f"{kernels}: {paint(', '.join(said) or 'no problems', worst)}"


def problem(located: Located, *, color: bool = False) -> str:
    """Return one problem: what, where, the line with a caret, and the remedy."""
    return shown(located.problem, file=located.file, line=located.line, paint=_paint if color else plain)


def summary(report: CheckReport, *, color: bool = False) -> str:
    """Return one line that counts the problems."""
    paint = _paint if color else plain
    counts = [(report.count(severity), severity) for severity in SEVERITIES]
    said = [f"{count} {severity}{'s' if count != 1 else ''}" for count, severity in counts if count]
    if not said:
        return f"{one_line(report.file)}: {paint('no problems', 'clean')}"
    worst = next(severity for count, severity in counts if count)
    line = f"{one_line(report.file)}: found {paint(', '.join(said), worst)}"
    codes = sorted({located.problem.code for located in report.found if located.problem.severity == worst})
    return f"{line}; `builder check --explain {codes[0]}` says more"


def _paint(text: str, role: str) -> str:
    return click.style(text, fg=_COLORS.get(role), bold=True)
