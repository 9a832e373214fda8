"""Workflow commands that GitHub shows as annotations on a change."""

from builder.config.text import short
from builder.errors import Severity
from builder.lint.report import CheckReport, Located
from builder.terminal import attribute, data

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: CheckReport) -> str:
    """Return one command per problem."""
    return "".join(f"{_command(located)}\n" for located in report.found)


def _command(located: Located) -> str:
    found, span = located.problem, located.problem.span
    properties = {"title": f"builder {found.code}", "file": located.file}
    if span is not None:
        properties |= {"line": str(span.line), "endLine": str(span.end_line)}
        if span.line == span.end_line:  # GitHub ignores columns of a range of lines
            properties |= {"col": str(span.column), "endColumn": str(span.end_column)}
    said = ",".join(f"{name}={attribute(value)}" for name, value in properties.items())
    message = short(found.message) if found.help is None else f"{short(found.message)}\nhelp: {short(found.help)}"
    return f"::{_LEVELS[found.severity]} {said}::{data(message)}"
