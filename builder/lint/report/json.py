"""One JSON document, for programs."""

import json
from typing import Any

from builder.config.text import dotted
from builder.lint.report import CheckReport, Located


def render(report: CheckReport) -> str:
    """Return the document: the file, its edition, and its problems in the order of the text format."""
    problems = [_problem(located, report.file) for located in report.found]
    document = {"file": report.file, "edition": report.edition, "problems": problems}
    return json.dumps(document, indent=2) + "\n"


def _problem(located: Located, file: str) -> dict[str, Any]:
    found, span = located.problem, located.problem.span
    return {
        # Most problems are in the config itself; the others name their file.
        **({} if located.file == file else {"file": located.file}),
        "severity": found.severity,
        "code": found.code,
        "message": found.message,
        "key": dotted(found.key) or None,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "end_line": None if span is None else span.end_line,
        "end_column": None if span is None else span.end_column,
        "help": found.help,
    }
