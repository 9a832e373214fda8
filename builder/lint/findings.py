"""The problems found in a kernel's files, and their output formats."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import quote

import click

from builder import __version__, json_text, resources
from builder.config.text import dotted, one_line, plain, short, shown
from builder.errors import BuilderError, Problem, Severity
from builder.terminal import attribute, data

PAGES = resources.place("docs/errors")
"""The pages of the codes; the index has their titles.

Codes are stable: no code is ever reused for another rule. Codes below B100 mean that the config cannot be read; codes
from B100 on are lints.
"""
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_COLORS = {"error": "red", "warning": "yellow", "note": "cyan", "place": "blue", "help": "green", "clean": "green"}
_MOST_ALIKE = 3
"""The most notes of one code that are shown; of more, only the first is."""
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@cache
def titles_of_codes() -> Mapping[str, str]:
    """Return the title of each code, in order; empty if the documentation is not installed."""
    index = PAGES / "README.md"
    text = index.read_text(encoding="utf-8") if index.is_file() else ""
    return dict(re.findall(r"^\| \[(B\d+)\]\(\1\.md\) \| (.*) \|$", text, re.MULTILINE))


def page_of(code: str) -> str:
    """Return the page of `code` as Markdown.

    Raises:
        BuilderError: there is no such code.
    """
    known = tuple(titles_of_codes())
    if code not in known:
        near = f"the codes are {known[0]} to {known[-1]}" if known else "this installation has no documentation"
        raise BuilderError(f"no page explains '{code}'", help=near)
    return (PAGES / f"{code}.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A problem and the file it is in."""

    file: str
    problem: Problem
    line: str | None = None
    """The text of the line where the problem starts, to be quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """All problems of one config and of the files that it names."""

    file: str
    """The path of the config, as the user would write it."""
    edition: int | None
    """The edition of the file; None if it is unknown."""
    found: tuple[Located, ...]

    @classmethod
    def of(cls, file: str, edition: int | None, found: Iterable[Located]) -> "CheckReport":
        """Make a report, sorted by position: the config first, then other files by name."""

        def order(located: Located) -> tuple[bool, str, int, int, str, str]:
            problem, span = located.problem, located.problem.span
            place = (0, 0) if span is None else (span.line, span.column)
            return (located.file != file, located.file, *place, problem.code, problem.message)

        return cls(file=file, edition=edition, found=tuple(sorted(set(found), key=order)))

    def count(self, severity: Severity) -> int:
        """Return how many problems have `severity`."""
        return sum(located.problem.severity == severity for located in self.found)

    @property
    def refused(self) -> bool:
        """Whether there is an error."""
        return self.count("error") > 0

    def strict(self) -> "CheckReport":
        """Return the report with every warning as an error."""
        found = tuple(
            replace(located, problem=replace(located.problem, severity="error"))
            if located.problem.severity == "warning"
            else located
            for located in self.found
        )
        return replace(self, found=found)


def locate(file: str, problem: Problem, lines: Sequence[str]) -> Located:
    """Add the file and the quoted line to a problem."""
    span = problem.span
    inside = span is not None and 1 <= span.line <= len(lines)
    return Located(file=file, problem=problem, line=lines[span.line - 1] if span and inside else None)


def to_text(report: CheckReport, *, color: bool = False, every: bool = False) -> str:
    """Return the problems, separated by blank lines, and a summary; errors come last, next to the summary.

    Of many notes with the same code, only the first is shown, unless `every` is set.
    """
    parts = _problems(report, color=color, every=every)
    return "\n\n".join([*parts, _summary(report, color=color)]) + "\n"


def all_to_text(reports: Sequence[CheckReport], *, color: bool = False, every: bool = False) -> str:
    """Return the problems of several kernels, a line that counts those of each kernel, and the shared problems."""
    parts = [part for report in reports for part in _problems(report, color=color, every=every)]
    lines = [_summary(report, color=color) for report in reports if report.found]
    counted = _counted(reports)
    kernels = {severity: sum(report.count(severity) > 0 for report in reports) for severity in counted}
    said = ", ".join(f"{count} in {kernels[severity]}" for severity, count in counted.items())
    paint = _paint if color else plain
    together = paint(said or "no problems", next(iter(counted), "clean"))
    lines.append(f"{len(reports)} kernel{'s' if len(reports) != 1 else ''}: {together}")
    return "\n\n".join([*parts, "\n".join(lines)]) + "\n"


def _problems(report: CheckReport, *, color: bool, every: bool) -> Iterator[str]:
    """Yield notes, then warnings, then errors, each by position, with the quoted line and the remedy."""
    notes = Counter(located.problem.code for located in report.found if located.problem.severity == "note")
    folded = set() if every else {code for code, count in notes.items() if count > _MOST_ALIKE}
    told: set[str] = set()
    for located in sorted(report.found, key=lambda each: -_SEVERITIES.index(each.problem.severity)):
        code, paint = located.problem.code, _paint if color else plain
        text = shown(located.problem, file=located.file, line=located.line, paint=paint)
        if located.problem.severity != "note" or code not in folded:
            yield text
        elif code not in told:
            told.add(code)
            yield f"{text}\n  and {notes[code] - 1} more of {code}: --all shows them"


def _summary(report: CheckReport, *, color: bool) -> str:
    """Return a line with the number of problems."""
    paint, counted = _paint if color else plain, _counted([report])
    if not counted:
        return f"{one_line(report.file)}: {paint('no problems', 'clean')}"
    worst = next(iter(counted))
    codes = sorted({located.problem.code for located in report.found if located.problem.severity == worst})
    said = paint(", ".join(counted.values()), worst)
    return f"{one_line(report.file)}: found {said}; `builder check --explain {codes[0]}` says more"


def _counted(reports: Sequence[CheckReport]) -> dict[Severity, str]:
    """Return the number of problems by severity, the worst first, without zeros."""
    counts = {severity: sum(report.count(severity) for report in reports) for severity in _SEVERITIES}
    return {severity: f"{count} {severity}{'s' if count != 1 else ''}" for severity, count in counts.items() if count}


def _paint(text: str, role: str) -> str:
    return click.style(text, fg=_COLORS.get(role), bold=True)


def to_json(report: CheckReport) -> str:
    """Return the report as JSON: the file, its edition, and its problems in the order of the text format."""
    return json_text.document(_document(report))


def all_to_json(reports: Mapping[str, CheckReport], *, errors: Mapping[str, str]) -> str:
    """Return the JSON document of several kernels: a report under each folder, and the problems between kernels."""
    kernels = {name: _document(report) for name, report in reports.items()}
    return json_text.document({"kernels": kernels, "errors": dict(errors)})


def _document(report: CheckReport) -> dict[str, Any]:
    problems = []
    for located in report.found:
        found, span = located.problem, located.problem.span
        problems.append(
            {
                # Most problems are in the config; only the others name their file.
                **({} if located.file == report.file else {"file": located.file}),
                "severity": found.severity,
                "code": found.code,
                "message": found.message,
                "key": dotted(found.key) or None,
                **(dict.fromkeys(("line", "column", "end_line", "end_column")) if span is None else asdict(span)),
                "help": found.help,
            }
        )
    return {"file": report.file, "edition": report.edition, "problems": problems}


def to_github(report: CheckReport) -> str:
    """Return one GitHub workflow command for each problem."""
    commands = []
    for located in report.found:
        found, span = located.problem, located.problem.span
        properties = {"title": f"builder {found.code}", "file": located.file}
        if span is not None:
            properties |= {"line": str(span.line), "endLine": str(span.end_line)}
            if span.line == span.end_line:  # GitHub ignores columns in a range of lines
                properties |= {"col": str(span.column), "endColumn": str(span.end_column)}
        said = ",".join(f"{name}={attribute(value)}" for name, value in properties.items())
        message = short(found.message) if found.help is None else f"{short(found.message)}\nhelp: {short(found.help)}"
        level = "notice" if found.severity == "note" else found.severity
        commands.append(f"::{level} {said}::{data(message)}\n")
    return "".join(commands)


def to_sarif(*reports: CheckReport) -> str:
    """Return a SARIF log with one run, also for several kernels: its rules are the codes that occur."""
    found = [located for report in reports for located in report.found]
    codes, titles = sorted({located.problem.code for located in found}), titles_of_codes()
    rules = [
        {
            "id": code,
            "shortDescription": {"text": titles.get(code, code)},
            "help": {"text": f"See docs/errors/{code}.md, or run: builder check --explain {code}"},
        }
        for code in codes
    ]
    run = {
        "tool": {"driver": {"name": "builder", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(located, codes) for located in found],
    }
    return json_text.line({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}) + "\n"


def _sarif_result(located: Located, codes: list[str]) -> dict[str, Any]:
    found, span = located.problem, located.problem.span
    message = found.message if found.help is None else f"{found.message}\nhelp: {found.help}"
    place: dict[str, Any] = {
        "artifactLocation": {"uri": quote(located.file.replace("\\", "/"), errors="surrogatepass")}
    }
    if span is not None:
        place["region"] = {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
    named = {"logicalLocations": [{"fullyQualifiedName": dotted(found.key)}]} if found.key else {}
    return {
        "ruleId": found.code,
        "ruleIndex": codes.index(found.code),
        "level": found.severity,
        "message": {"text": message},
        "locations": [{"physicalLocation": place, **named}],
    }
