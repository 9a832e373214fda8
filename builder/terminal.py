"""Write to a terminal or a log; untrusted text cannot control it."""

import os
import re
import stat
import sys
from typing import TextIO

from builder.errors import ToolError
from builder.wording import visible

_COMMAND = re.compile(r"^(?P<before>\s*)::(?=[A-Za-z][\w-]*(?:[ \t][^\n]*?)?::)", re.MULTILINE)
_OLD_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)")
"""Commands in the logs of CI services: GitHub's start a line with `::`, other ones have `##` anywhere."""
_UNSAFE = re.compile(r"[^\n\t\x20-\x7e]")
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


class OutputError(ToolError):
    """The output cannot be written."""


class ReaderGoneError(OutputError):
    """The reader of the output has ended, as in `builder matrix | head`; this is no failure."""

    exit_code = 0


def safe(text: str) -> str:
    """Replace what a terminal or a CI log would obey or hide in `text` by a printable spelling.

    Line breaks and tabs stay; control characters, marks that reverse or hide text, and lone surrogates do not.
    """
    if not text.isascii() or not text.isprintable():
        text = _UNSAFE.sub(lambda match: visible(match[0]), text)
    return _without_commands(text)


def _without_commands(text: str) -> str:
    if "::" in text:
        text = _COMMAND.sub(r"\g<before>\\u003a:", text)
    return _OLD_COMMAND.sub(r"#\\u0023", text) if "##" in text else text


def out(text: str = "", *, end: str = "\n", styled: bool = False) -> None:
    """Write a result to stdout; `styled` keeps its colours.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` if the reader has ended.
    """
    _write(sys.stdout, (_safe_but_styles(text) if styled else safe(text)) + end)


def err(text: str = "", *, end: str = "\n", styled: bool = False) -> None:
    """Write progress or a diagnostic to stderr; `styled` keeps its colours.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` if the reader has ended.
    """
    _write(sys.stderr, (_safe_but_styles(text) if styled else safe(text)) + end)


def document(text: str, *, end: str = "") -> None:
    """Write a document for a program to stdout: as is to a file, without CI commands to a pipe, `safe` to a terminal.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` if the reader has ended.
    """
    if _is_file(sys.stdout):
        _write(sys.stdout, text + end)
    elif sys.stdout is not None and sys.stdout.isatty():
        out(text, end=end)
    else:
        _write(sys.stdout, _without_commands(text) + end)


def commands(lines: str, *, result: bool = False) -> None:
    """Write commands for GitHub to stderr, or to stdout as a `result`; the caller has escaped foreign text.

    Raises:
        OutputError: they cannot be written; a `ReaderGoneError` if the reader has ended.
    """
    _write(sys.stdout if result else sys.stderr, lines)


def data(text: str) -> str:
    """Escape a text for a command of GitHub: what would end the command or begin another, and what `safe` escapes."""
    shown = _UNSAFE.sub(lambda match: visible(match[0]), text)
    return shown.replace("%", "%25").replace("\n", "%0A")


def attribute(text: str) -> str:
    """Escape an attribute's value for a command of GitHub."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def interactive() -> bool:
    """Whether standard input and output are a terminal, so that a person can answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _safe_but_styles(text: str) -> str:
    return "".join(part if _STYLE.fullmatch(part) else safe(part) for part in _STYLE.split(text))


def _is_file(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # a replaced stream, as in a test, has no file number
        return False


def _write(stream: TextIO | None, text: str) -> None:
    if not text:
        return
    name = "stderr" if stream is sys.stderr else "stdout"
    if stream is None:
        raise OutputError(f"cannot write to {name}: it is closed", help="leave it open, or send it to a file")
    encoding = stream.encoding or "utf-8"
    try:
        # Characters that the terminal's encoding lacks are written as escapes.
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError(f"nobody reads {name}") from error
    except OSError as error:
        raise OutputError(
            f"cannot write to {name}: {error.strerror}", help="free the disk, or send it elsewhere"
        ) from error
