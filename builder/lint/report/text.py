"""The format for people: each problem with its line quoted, and a count at the end."""

from collections.abc import Sequence

import click

from builder.config.snippet import name
from builder.config.text import plain, shown
from builder.lint.report import SEVERITIES, CheckReport, Located

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan", "place": "blue", "help": "green", "clean": "green"}


def render(report: CheckReport, *, color: bool = False) -> str:
    """Return every problem, a blank line between two, and a summary."""
    parts = [problem(located, color=color) for located in report.found]
    return "\n\n".join([*parts, summary(report, color=color)]) + "\n"


def render_all(reports: Sequence[CheckReport], *, color: bool = False) -> str:
    """Return every problem of several kernels, a line for each that has some, and what they have together."""
    parts = [problem(located, color=color) for report in reports for located in report.found]
    lines = [summary(report, color=color) for report in reports if report.found]
    lines.append(_together(reports, color=color))
    return "\n\n".join([*parts, "\n".join(lines)]) + "\n"


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
        return f"{name(report.file)}: {paint('no problems', 'clean')}"
    worst = next(severity for count, severity in counts if count)
    line = f"{name(report.file)}: found {paint(', '.join(said), worst)}"
    codes = sorted({located.problem.code for located in report.found if located.problem.severity == worst})
    return f"{line}; `builder check --explain {codes[0]}` says more"


def _paint(text: str, role: str) -> str:
    return click.style(text, fg=_COLORS.get(role), bold=True)
