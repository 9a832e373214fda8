"""The format for people: each problem with its line quoted, and a count at the end."""

from collections.abc import Iterator

import click

from builder.config.text import dotted
from builder.errors import Problem, Severity
from builder.lint.report import SEVERITIES, Located, Report
from builder.lint.report.snippet import name, short, underline

_COLORS: dict[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


def render(report: Report, *, color: bool = False) -> str:
    """Return every problem, a blank line between two, and a summary."""
    parts = [problem(located, color=color) for located in report.found]
    return "\n\n".join([*parts, summary(report, color=color)]) + "\n"


def problem(located: Located, *, color: bool = False) -> str:
    """Return one problem: what, where, the line with a caret, and the remedy."""
    return "\n".join(_lines(located, color=color))


def summary(report: Report, *, color: bool = False) -> str:
    """Return one line that counts the problems."""
    counts = [(report.count(severity), severity) for severity in SEVERITIES]
    said = [f"{count} {severity}{'s' if count != 1 else ''}" for count, severity in counts if count]
    if not said:
        return f"{name(report.file)}: {_paint('no problems', 'green', color=color)}"
    worst = next(severity for count, severity in counts if count)
    line = f"{name(report.file)}: found {_paint(', '.join(said), _COLORS[worst], color=color)}"
    codes = sorted({located.problem.code for located in report.found if located.problem.severity == worst})
    return f"{line}; `builder check --explain {codes[0]}` says more"


def _lines(located: Located, *, color: bool) -> Iterator[str]:
    found = located.problem
    label = _paint(f"{found.severity}[{found.code}]", _COLORS[found.severity], color=color)
    first, *rest = short(found.message).split("\n")
    yield f"{label}: {_paint(first, None, color=color)}"
    yield f"  {_paint('-->', 'blue', color=color)} {_place(located)}"
    if located.line is not None:
        yield from _quote(found, located.line, color=color)
    yield from (f"  {line}" for line in rest)
    if found.help is not None:
        head, *more = short(found.help).split("\n")
        yield f"  {_paint('help:', 'green', color=color)} {head}"
        yield from (f"        {line}" for line in more)


def _place(located: Located) -> str:
    span, key = located.problem.span, located.problem.key
    file = name(located.file)
    place = file if span is None else f"{file}:{span.line}:{span.column}"
    return f"{place} ({dotted(key)})" if key else place


def _quote(found: Problem, line: str, *, color: bool) -> Iterator[str]:
    span = found.span
    if span is None:
        return
    end = span.end_column if span.end_line == span.line else len(line) + 1
    quoted, carets = underline(line, span.column, end)
    number = str(span.line)
    bar = _paint("|", "blue", color=color)
    yield f"  {_paint(number, 'blue', color=color)} {bar} {quoted}"
    yield f"  {' ' * len(number)} {bar} {_paint(carets, _COLORS[found.severity], color=color)}"


def _paint(text: str, hue: str | None, *, color: bool) -> str:
    return click.style(text, fg=hue, bold=True) if color else text
