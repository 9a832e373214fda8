"""SARIF 2.1.0, which code scanning services read."""

from typing import Any
from urllib.parse import quote

from builder import __version__, json_text
from builder.config.text import dotted
from builder.errors import Severity
from builder.lint import codes
from builder.lint.report import CheckReport, Located
from builder.lint.report.pages import link

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "note"}


def render(*reports: CheckReport) -> str:
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
        "help": {"text": f"See {link(code)}, or run: builder check --explain {code}"},
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
        "level": _LEVELS[found.severity],
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
