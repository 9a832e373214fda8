"""Write to a terminal or a log, which untrusted text cannot control."""

import os
import re
import stat
import sys
from typing import TextIO

from builder.errors import ToolError
from builder.wording import visible

_COMMAND = re.compile(r"^(?P<before>\s*)::(?=[A-Za-z][\w-]*(?:[ \t][^\n]*?)?::)", re.MULTILINE)
_OLD_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)")
"""Commands in the logs of CI services: GitHub's at the start of a line, and those of it and others anywhere by `##`."""
_UNSAFE = re.compile(r"[^\n\t\x20-\x7e]")
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


class OutputError(ToolError):
    """The output cannot be written."""


class ReaderGoneError(OutputError):
    """The reader of the output has ended, as in `builder matrix | head`, which is no failure."""

    exit_code = 0


def safe(text: str) -> str:
    """Return `text` with a printable spelling of what a terminal or the log of a CI service would obey or hide.

    Lines and tabs stay; control characters, marks that turn or hide text, and halves of characters do not.
    """
    if not text.isascii() or not text.isprintable():
        text = _UNSAFE.sub(lambda match: visible(match[0]), text)
    return _without_commands(text)


def _without_commands(text: str) -> str:
    if "::" in text:
        text = _COMMAND.sub(r"\g<before>\\u003a:", text)
    return _OLD_COMMAND.sub(r"#\\u0023", text) if "##" in text else text


def out(text: str = "", *, end: str = "\n", styled: bool = False) -> None:
    """Show a result, on stdout; where it is `styled`, its colours stay.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` where nobody reads it any more.
    """
    _write(sys.stdout, (_safe_but_styles(text) if styled else safe(text)) + end)


def err(text: str = "", *, end: str = "\n") -> None:
    """Show progress or a diagnostic, on stderr.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` where nobody reads it any more.
    """
    _write(sys.stderr, safe(text) + end)


def document(text: str, *, end: str = "") -> None:
    """Write a document for a program, on stdout: a file gets each byte, a pipe all but commands, a terminal no more.

    Raises:
        OutputError: it cannot be written; a `ReaderGoneError` where nobody reads it any more.
    """
    if _is_file(sys.stdout):
        _write(sys.stdout, text + end)
    elif sys.stdout is not None and sys.stdout.isatty():
        out(text, end=end)
    else:
        _write(sys.stdout, _without_commands(text) + end)


def commands(lines: str, *, result: bool = False) -> None:
    """Give GitHub commands, on stderr or as a `result` on stdout; the caller has escaped all that others wrote.

    Raises:
        OutputError: they cannot be written; a `ReaderGoneError` where nobody reads them any more.
    """
    _write(sys.stdout if result else sys.stderr, lines)


def data(text: str) -> str:
    """Escape what would end a command of GitHub or begin another one, and what `safe` would."""
    shown = _UNSAFE.sub(lambda match: visible(match[0]), text)
    return shown.replace("%", "%25").replace("\n", "%0A")


def attribute(text: str) -> str:
    """Escape the value of an attribute of a command of GitHub."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def interactive() -> bool:
    """Whether a person sits at both ends: standard input and output are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _safe_but_styles(text: str) -> str:
    return "".join(part if _STYLE.fullmatch(part) else safe(part) for part in _STYLE.split(text))


def _is_file(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # a stream of a test or of another program has no number
        return False


def _write(stream: TextIO | None, text: str) -> None:
    if not text:
        return
    name = "stderr" if stream is sys.stderr else "stdout"
    if stream is None:
        raise OutputError(f"cannot write to {name}: it is closed", help="leave it open, or send it to a file")
    encoding = stream.encoding or "utf-8"
    try:
        # What the encoding of a terminal cannot say is spelled: no text is lost to its own characters.
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError(f"nobody reads {name}") from error
    except OSError as error:
        raise OutputError(
            f"cannot write to {name}: {error.strerror}", help="free the disk, or send it elsewhere"
        ) from error
