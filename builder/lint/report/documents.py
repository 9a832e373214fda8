"""The formats of a check's result for programs: JSON, SARIF, and GitHub's workflow commands."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from builder import __version__, json_text
from builder.config.text import dotted, short
from builder.errors import Severity
from builder.lint import codes
from builder.lint.report import CheckReport, Located
from builder.terminal import attribute, data


def to_json(report: CheckReport) -> str:
    """Return the document: the file, its edition, and its problems in the order of the text format."""
    return json_text.document(_document(report))


def all_to_json(reports: Mapping[str, CheckReport], *, errors: Mapping[str, str]) -> str:
    """Return the document of several kernels: that of each by its folder, and what is wrong with them together."""
    kernels = {name: _document(report) for name, report in reports.items()}
    return json_text.document({"kernels": kernels, "errors": dict(errors)})


def _document(report: CheckReport) -> dict[str, Any]:
    problems = [_json_problem(located, report.file) for located in report.found]
    return {"file": report.file, "edition": report.edition, "problems": problems}


def _json_problem(located: Located, file: str) -> dict[str, Any]:
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


_GITHUB_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def to_github(report: CheckReport) -> str:
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
    return f"::{_GITHUB_LEVELS[found.severity]} {said}::{data(message)}"


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "note"}


def to_sarif(*reports: CheckReport) -> str:
    """Return one log with one run, also of several kernels: the codes that occur are its rules."""
    found = [located for report in reports for located in report.found]
    occurring = sorted({located.problem.code for located in found})
    run = {
        "tool": {
            "driver": {
                "name": "builder",
                "version": __version__,
                "rules": [_rule(code) for code in occurring],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(located, occurring) for located in found],
    }
    return json_text.line({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _rule(code: str) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": codes.CODES[code]},
        "help": {"text": f"See docs/errors/{code}.md, or run: builder check --explain {code}"},
    }


def _result(located: Located, rules: list[str]) -> dict[str, Any]:
    found = located.problem
    message = found.message if found.help is None else f"{found.message}\nhelp: {found.help}"
    place: dict[str, Any] = {"physicalLocation": _physical(located)}
    if found.key:
        place["logicalLocations"] = [{"fullyQualifiedName": dotted(found.key)}]
    return {
        "ruleId": found.code,
        "ruleIndex": rules.index(found.code),
        "level": _SARIF_LEVELS[found.severity],
        "message": {"text": message},
        "locations": [place],
    }


def _physical(located: Located) -> dict[str, Any]:
    artifact = {"uri": quote(located.file.replace("\\", "/"), errors="surrogatepass")}
    span = located.problem.span
    if span is None:
        return {"artifactLocation": artifact}
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
    return {"artifactLocation": artifact, "region": region}
