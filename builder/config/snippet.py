"""Quote a line of a file with a caret under a part of it, safely for a terminal."""

import unicodedata

from builder.wording import visible

_TAB = "    "
_WIDTH = 160
"""Characters of a line that are shown at most."""
_BEFORE = 48
"""Characters kept before the caret when a long line is cut."""
_TEXT = 2000


def short(text: str, limit: int = _TEXT) -> str:
    """Return `text`, safe to show, cut in its middle when it is longer than `limit`."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} … {text[-half:]}"
    return "\n".join(_safe(line) for line in text.split("\n"))


def name(text: str) -> str:
    """Return the name of a file on one line, safe to show."""
    return short(text).replace("\n", "\\n")


def underline(line: str, column: int, end: int) -> tuple[str, str]:
    """Return `line` as shown, and the line of carets under its columns `column` to `end` (1-based, exclusive)."""
    start, end = column - 1, max(end - 1, column)
    first = max(0, start - _BEFORE) if len(line) > _WIDTH else 0
    last = min(len(line), first + _WIDTH)
    before = ("…" if first else "") + _safe(line[first:start])
    marked = _safe(line[start : min(end, last)])
    after = _safe(line[min(end, last) : last]) + ("…" if last < len(line) else "")
    carets = " " * _columns(before) + "^" * max(1, _columns(marked))
    return f"{before}{marked}{after}".rstrip(), carets


def _safe(text: str) -> str:
    """Return `text` with what a terminal would obey or hide written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_TAB if character == "\t" else visible(character) for character in text)


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
