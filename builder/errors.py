"""Errors that a user can do something about, each with an exit code, and the problems of an input file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

Severity = Literal["error", "warning", "note"]
KeyPath = tuple[str | int, ...]
"""The way to a key or a value of a document: the keys, and the numbers in arrays."""


class BuilderError(Exception):
    """Something the user can fix; the message says what, where, why and what to do.

    The first line stands alone: lower case, no full stop. A remedy follows as a `help:` line.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return self.message if self.help is None else f"{self.message}\n  help: {self.help}"

    @property
    def shown(self) -> str:
        """The text that a command shows: `error:` comes first, unless the message starts with its own heading."""
        text = str(self)
        return text if text.startswith(("error", "warning")) else f"error: {text}"


class DifferenceError(BuilderError):
    """A comparison found a difference: this is an answer and not a failure."""

    exit_code = 1


class NothingToDoError(BuilderError):
    """Nothing was selected, or something would be overwritten."""

    exit_code = 3


class ToolError(BuilderError):
    """A compiler, Nix, uv or another tool failed or is missing."""

    exit_code = 4


class NotHereError(ToolError):
    """This machine lacks something; the message says what. Nothing went wrong."""


class WrongHashError(ToolError):
    """A file does not have the pinned hash: its source is wrong, or somebody changed it."""


class DiskFullError(ToolError):
    """The disk is full; the same command succeeds once there is room."""


class AuditError(BuilderError):
    """A wheel breaks a rule."""

    exit_code = 5


class PublishError(BuilderError):
    """A wheel could not be published."""

    exit_code = 6


class BugError(BuilderError):
    """A bug in this program, which only its authors can correct."""

    exit_code = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of a text: 1-based line and column (in characters), the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding about an input file."""

    code: str
    """Stable code, such as `B001`; each has a page in the docs."""
    severity: Severity
    message: str
    key: KeyPath = ()
    span: Span | None = None
    help: str | None = None


class ConfigError(BuilderError):
    """A config with at least one problem of severity error."""

    def __init__(self, *, file: str, problems: Sequence[Problem], rendered: str) -> None:
        super().__init__(rendered)
        self.file = file
        self.problems = tuple(problems)
