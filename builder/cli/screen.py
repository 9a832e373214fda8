"""Show text to people: on a terminal in colours that mean something, and in lines that fit; elsewhere as it is."""

import os
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, TextIO

import click

from builder import terminal

PLAIN_TERMINALS = frozenset({"dumb", "unknown"})
"""Values of TERM without colours and redrawn lines: the cursor cannot be moved, or a screen reader speaks each line."""
_RED, _GREEN, _YELLOW, _CYAN, _BOLD = "1;31", "32", "33", "36", "1"
"""Colours as a terminal takes them; red is bold, too."""
_USUAL = 80
"""The columns of a terminal that does not tell."""
_SHORTEST = 30
"""The least columns to which lines are wrapped; what is narrower wraps them itself."""
_INDENT = "    "
_WORDS = (
    (
        _RED,
        r"^\s*[Ee]rror(?:\[\w+\])?:",
        r"(?<=: )(?:fatal |catastrophic )?error(?=:)",
        r"^CMake Error\b",
        r"\bFAILED\b",
        r"\bNOT WHAT WAS PINNED\b",
    ),
    (_YELLOW, r"^\s*warning(?:\[\w+\])?:", r"(?<=: )warning(?=:| #)", r"\b\d+ warnings?\b", r"^--(?= )"),
    (_YELLOW, r"\bleft out \[[^\]]*\]"),
    (
        _GREEN,
        r"^ok(?= )",
        r"(?<=^\d\d:\d\d:\d\d  )ok(?= )",
        r"(?<=: )(?:built|unchanged)\b",
        r"^\d+ (?:built|unchanged)\b",
    ),
    (_CYAN, r"^\s*(?:note|help):", r"(?<=^      )(?:to change it|decided by)\b"),
    (_BOLD, r"^[a-z]+(?= \(\d+\)$)"),
)
"""Words with their colours, the most urgent first."""
_PAINTED = tuple((re.compile("|".join(patterns)), color) for color, *patterns in _WORDS)
_SOURCE = re.compile(r"\s*\d* \|")
"""A line of source code in a message, which is not wrapped."""


def out(text: str = "", *, end: str = "\n") -> None:
    """Write a result for people to stdout.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` if the reader has ended.
    """
    colored = has_color(sys.stdout)
    terminal.out(fitted(text, sys.stdout, colored=colored), end=end, styled=colored)


def err(text: str = "", *, end: str = "\n") -> None:
    """Write progress or a diagnostic to stderr.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` if the reader has ended.
    """
    colored = has_color(sys.stderr)
    terminal.err(fitted(text, sys.stderr, colored=colored), end=end, styled=colored)


def has_color(stream: TextIO | None) -> bool:
    """Whether a stream gets colours: NO_COLOR forbids and FORCE_COLOR demands them, else a terminal has them."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return width_of(stream) is not None and os.environ.get("TERM", "").lower() not in PLAIN_TERMINALS


def width_of(stream: TextIO | None) -> int | None:
    """Return the columns of a terminal; None for any other stream."""
    if stream is None or not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    try:
        return int(given) if given.isdecimal() else os.get_terminal_size(stream.fileno()).columns or _USUAL
    except (OSError, ValueError):  # a replaced stream, as in a test, has no file number
        return _USUAL


def fitted(text: str, stream: TextIO | None, *, colored: bool) -> str:
    """Return a text with safe characters only, wrapped for a stream, and painted if it is to be `colored`."""
    width = width_of(stream)
    lines = terminal.safe(text).split("\n")
    if width is not None:
        lines = [each for line in lines for each in wrapped(line, width)]
    return "\n".join(map(painted, lines) if colored else lines)


def wrapped(line: str, width: int) -> list[str]:
    """Return a line in parts of at most `width` columns, broken between words; a longer word stays whole."""
    if len(line) <= width or width < _SHORTEST or _SOURCE.match(line):
        return [line]
    hanging = line[: len(line) - len(line.lstrip(" "))] + _INDENT
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    ) or [line]


def painted(line: str) -> str:
    """Return a line with its words in their colours."""
    marks: list[tuple[int, int, str]] = []
    for pattern, color in _PAINTED:
        for match in pattern.finditer(line):
            start = match.end() - len(match[0].lstrip(" "))
            if all(end <= start or match.end() <= begin for begin, end, _ in marks):
                marks.append((start, match.end(), color))
    for start, end, color in sorted(marks, reverse=True):
        line = f"{line[:start]}\x1b[{color}m{line[start:end]}\x1b[0m{line[end:]}"
    return line


class HelpFormatter(click.HelpFormatter):
    """Writes the help of a command: on a terminal its headings are bold, and its options have a colour."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line about the use of a command."""
        super().write_usage(prog, args, prefix)
        self.buffer = [_styled("Usage:", _BOLD).join(text.split("Usage:", 1)) for text in self.buffer]

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        self.write(f"{'':>{self.current_indent}}{_styled(f'{heading}:', _BOLD)}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options with their meanings."""
        # click measures a word without its colour.
        super().write_dl([(_styled(name, _CYAN), text) for name, text in rows], col_max, col_spacing)


class HelpContext(click.Context):
    """The context of a command whose help has colours."""

    formatter_class = HelpFormatter

    def __init__(self, *given: Any, **values: Any) -> None:
        super().__init__(*given, **values)
        self.color = has_color(sys.stdout)


def _styled(text: str, color: str) -> str:
    return f"\x1b[{color}m{text}\x1b[0m" if text and has_color(sys.stdout) else text
