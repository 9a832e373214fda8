"""One JSON document, for programs."""

from collections.abc import Mapping
from typing import Any

from builder import json_text
from builder.config.text import dotted
from builder.lint.report import CheckReport, Located


def render(report: CheckReport) -> str:
    """Return the document: the file, its edition, and its problems in the order of the text format."""
    return json_text.document(_document(report))


def render_all(reports: Mapping[str, CheckReport], *, errors: Mapping[str, str]) -> str:
    """Return the document of several kernels: that of each by its folder, and what is wrong with them together."""
    kernels = {name: _document(report) for name, report in reports.items()}
    return json_text.document({"kernels": kernels, "errors": dict(errors)})


def _document(report: CheckReport) -> dict[str, Any]:
    problems = [_problem(located, report.file) for located in report.found]
    return {"file": report.file, "edition": report.edition, "problems": problems}


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
