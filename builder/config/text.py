"""A source text: find its keys and values, and show problems in it."""

import os
import re
import stat
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import toml
from builder.config import _positions
from builder.errors import ConfigError, KeyPath, Problem, Severity, Span
from builder.wording import escaped, quoted, visible

__all__ = ["LARGEST", "KeyPath", "Source"]

LARGEST = 2 * 1024 * 1024
"""The most bytes of a config; the largest public one has 200,000."""

Paint = Callable[[str, str], str]
"""Colors a part of a message, by its role: a severity, `message`, `place` or `help`."""

_TAB = "    "
_WIDTH = 160
"""The most characters of a line that are shown."""
_BEFORE = 48
"""Characters kept before the caret when a long line is cut."""
_LONGEST = 2000


def plain(text: str, role: str) -> str:  # noqa: ARG001  what colors looks at it
    """Color nothing."""
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text, with the name that the user knows it by."""

    name: str
    text: str

    def __post_init__(self) -> None:
        # A byte order mark and CRLF carry no meaning; columns stay right without them.
        object.__setattr__(self, "text", self.text.removeprefix("\ufeff").replace("\r\n", "\n"))

    @property
    def index(self) -> _positions.Index:
        """The places of its keys and values, searched for when a problem is shown."""
        return _positions.scan(self.text)

    @classmethod
    def read(cls, path: Path, *, name: str | None = None) -> "Source":
        """Read a file, which may contain anything.

        Raises:
            ConfigError: the file is missing, not a plain file, too large or not UTF-8.
        """
        shown = escaped(path.name if name is None else name)  # a line in a name could be a command for a CI service
        content = _read(path, shown)
        if leaves(path):
            raise _unreadable(shown, path, "it is a symbolic link out of this directory, and its lines are not shown")
        try:
            return cls(name=shown, text=content.decode("utf-8"))
        except UnicodeDecodeError as error:
            good = cls(name=shown, text=content[: error.start].decode("utf-8"))
            end = len(good.text)
            raise good.error(
                Problem(
                    code="B001",
                    severity="error",
                    message=f"the file is not UTF-8: byte 0x{content[error.start]:02x}",
                    span=good.span_of(end, end + 1),
                    help="save the file in the encoding UTF-8",
                )
            ) from error

    def table(self) -> dict[str, Any]:
        """Parse the text as TOML.

        Raises:
            ConfigError: the text is not TOML, or is nested too deeply.
        """
        text, deepest = self.text, _positions.DEEPEST
        # Nearly every text is too short, and has too few brackets and dots, to be refused.
        flat = len(text) <= _positions.MOST and text.count("[") + text.count("{") <= deepest
        if not (flat and all(line.count(".") < deepest for line in text.split("\n"))) and self.index.refused:
            message, at = self.index.refused
            remedy = "no config has that many: check the brackets and the dots before this place"
            span = self.span_of(at, at + 1)
            raise self.error(Problem(code="B003", severity="error", message=message, span=span, help=remedy))
        try:
            # The parser would convert CRLF again and lose a second CR before it, which is an error.
            return toml.loads(self.text.replace("\r\n", "\r\r\n"))
        except ValueError as error:  # TOMLDecodeError, and integers that are too long for Python
            raise self.error(*self._syntax(str(error))) from error

    def _syntax(self, error: str) -> Iterator[Problem]:
        for mistake in _positions.explain(self.text, error, self.index):
            span = self.span_of(mistake.start, mistake.end)
            yield Problem(code="B002", severity="error", message=mistake.message, span=span, help=mistake.help)

    def has(self, path: KeyPath) -> bool:
        """Whether the text has something at `path`: a key, a value or a table."""
        return path in self.index.entries

    def span(self, path: KeyPath, *, key: bool = False) -> Span | None:
        """Return the place of the value at `path`, or of its key; if it is missing, of the closest enclosing table."""
        while path:
            entry = self.index.entries.get(path)
            if entry is not None:
                return self.span_of(*(entry.key if key else entry.value))
            path, key = path[:-1], False
        return None

    def raw(self, path: KeyPath) -> str:
        """Return the value at `path` as the text spells it."""
        entry = self.index.entries.get(path)
        return "" if entry is None else self.text[slice(*entry.value)]

    def span_of(self, start: int, end: int) -> Span:
        """Return two offsets as lines and columns."""
        starts = self.index.starts
        line, end_line = bisect_right(starts, start), bisect_right(starts, end)
        return Span(
            line=line,
            column=start - starts[line - 1] + 1,
            end_line=end_line,
            end_column=end - starts[end_line - 1] + 1,
        )

    def problem(
        self,
        code: str,
        message: str,
        *,
        path: KeyPath = (),
        key: bool = False,
        severity: Severity = "error",
        help: str | None = None,
    ) -> Problem:
        """Return a problem at the value (or the key) of `path`."""
        span = self.span(path, key=key)
        return Problem(code=code, severity=severity, message=message, key=path, span=span, help=help)

    def error(self, *problems: Problem) -> ConfigError:
        """Return the error that reports `problems`, sorted by position; those without a place come first."""

        def place(problem: Problem) -> tuple[int, int]:
            return (0, 0) if problem.span is None else (problem.span.line, problem.span.column)

        ordered = tuple(sorted(problems, key=place))
        return ConfigError(file=self.name, problems=ordered, rendered=self.render(ordered))

    def render(self, problems: Sequence[Problem]) -> str:
        """Return problems as text: message, place, the quoted line with a caret, and the remedy."""
        lines = ((problem, self.line(problem.span.line) if problem.span else None) for problem in problems)
        return "\n".join(shown(problem, file=self.name, line=line) for problem, line in lines)

    def line(self, number: int) -> str:
        """Return line `number`, counted from 1, without its end."""
        starts = self.index.starts
        start = starts[number - 1]
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[start:end]


def leaves(path: Path) -> bool:
    """Whether a path of an untrusted directory is a symbolic link that leads out of it."""
    if not path.is_symlink():
        return False
    folder = os.path.realpath(path.parent).rstrip(os.sep) + os.sep
    return not os.path.realpath(path).startswith(folder)


def dotted(path: KeyPath) -> str:
    """Return a path as TOML spells it, with array indexes in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]{1,80}", part)
            text += ("." if text else "") + (part if bare else quoted(part))
    return text


def shown(problem: Problem, *, file: str, line: str | None, paint: Paint = plain) -> str:
    """Return a problem as text: message, place, `line` with a caret, and the remedy."""
    first, *rest = short(problem.message).split("\n")
    place = one_line(file) if problem.span is None else f"{one_line(file)}:{problem.span.line}:{problem.span.column}"
    key = f" ({dotted(problem.key)})" if problem.key else ""
    lines = [
        f"{paint(f'{problem.severity}[{problem.code}]', problem.severity)}: {paint(first, 'message')}",
        f"  {paint('-->', 'place')} {place}{key}",
    ]
    if problem.span is not None and line is not None:
        end = problem.span.end_column if problem.span.end_line == problem.span.line else len(line) + 1
        text, carets = underline(line, problem.span.column, end)
        number, bar = str(problem.span.line), paint("|", "place")
        lines.append(f"  {paint(number, 'place')} {bar} {text}")
        lines.append(f"  {' ' * len(number)} {bar} {paint(carets, problem.severity)}")
    lines += [f"  {more}" for more in rest]
    if problem.help is not None:
        first, *rest = short(problem.help).split("\n")
        lines += [f"  {paint('help:', 'help')} {first}", *(f"        {more}" for more in rest)]
    return "\n".join(lines)


def _read(path: Path, shown: str) -> bytes:
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _unreadable(shown, path, reason or "unknown reason") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _unreadable(shown, path, "not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(LARGEST + 1)
    finally:
        os.close(descriptor)
    if len(content) > LARGEST:
        raise _unreadable(shown, path, f"larger than {LARGEST // 1024**2} MiB, which no config is")
    return content


def _unreadable(shown: str, path: Path, reason: str) -> ConfigError:
    problem = Problem(
        code="B001",
        severity="error",
        message=f"cannot read {quoted(shown)} in {quoted(str(path.parent))}: {reason[:1].lower()}{reason[1:]}",
        help="name a kernel directory, which has a 'build.toml'",
    )
    return Source(name=shown, text="").error(problem)


def short(text: str, limit: int = _LONGEST) -> str:
    """Return `text`, safe to show, cut in the middle if it is longer than `limit`."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} … {text[-half:]}"
    return "\n".join(_safe(line) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Return the name of a file on one line, safe to show."""
    return short(text).replace("\n", "\\n")


def underline(line: str, column: int, end: int) -> tuple[str, str]:
    """Return `line` as shown, and a line of carets under its columns `column` to `end` (1-based, exclusive)."""
    start, end = column - 1, max(end - 1, column)
    first = max(0, start - _BEFORE) if len(line) > _WIDTH else 0
    last = min(len(line), first + _WIDTH)
    before = ("…" if first else "") + _safe(line[first:start])
    marked = _safe(line[start : min(end, last)])
    after = _safe(line[min(end, last) : last]) + ("…" if last < len(line) else "")
    carets = " " * _columns(before) + "^" * max(1, _columns(marked))
    return f"{before}{marked}{after}".rstrip(), carets


def _safe(text: str) -> str:
    """Escape the characters of `text` that a terminal would obey or hide."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_TAB if character == "\t" else visible(character) for character in text)


def _columns(text: str) -> int:
    """Return the number of terminal columns of a text."""
    if text.isascii():
        return len(text)
    seen = (character for character in text if not unicodedata.combining(character))
    return sum(2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1 for character in seen)
