"""The problems that were found in the files of a kernel, and their formats."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from builder.errors import Problem, Severity

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A problem and the file it is in."""

    file: str
    problem: Problem
    line: str | None = None
    """The text of the line where the problem starts, to quote."""

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """The place of the problem among the others: by position, and then by code."""
        span = self.problem.span
        place = (0, 0) if span is None else (span.line, span.column)
        return (self.file, *place, self.problem.code, self.problem.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Everything that was found about one config and the files it names."""

    file: str
    """The config, as the user would name it."""
    edition: int | None
    """The version the file is written in; None when that cannot be told."""
    found: tuple[Located, ...]

    @classmethod
    def of(cls, file: str, edition: int | None, found: Iterable[Located]) -> "CheckReport":
        """Sort by position: the config first, then other files by name."""
        ordered = sorted(set(found), key=lambda located: (located.file != file, located.order))
        return cls(file=file, edition=edition, found=tuple(ordered))

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


def locate(file: str, problem: Problem, lines: tuple[str, ...] | list[str]) -> Located:
    """Add the file, and the line to quote, to a problem."""
    span = problem.span
    inside = span is not None and 1 <= span.line <= len(lines)
    return Located(file=file, problem=problem, line=lines[span.line - 1] if span and inside else None)


Format = Callable[[CheckReport], str]
"""Renders a report as a document that ends in a newline, or as nothing at all."""
