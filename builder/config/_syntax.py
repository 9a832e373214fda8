"""Explain what is wrong with a text that is not TOML, and where."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from builder.config._positions import Index
from builder.wording import escaped, quoted

_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_AT_END = " (at end of document)"
_ESCAPES = ("unescaped '\\'", "invalid hex value", "escaped character")
_LONG_INTEGER = "exceeds the limit"
_DIGITS = re.compile(r"[+-]?[0-9_]{1000,}")
_TWICE = ("cannot overwrite", "cannot declare", "cannot mutate", "duplicate inline table key")

_BETTER: tuple[tuple[str | tuple[str, ...], str | None, str], ...] = (
    (
        ("illegal character '\\n'", "unterminated string"),
        "a string is not closed",
        "add the closing quote; a string of several lines has three at each end",
    ),
    (("expected \"'", "expected '\"'"), "a string is not closed", "add the closing quote"),
    (("unclosed array", "unclosed inline table"), None, "add the closing bracket, or the comma between two entries"),
    ("expected '=' after a key", "a key without '='", "write 'key = value', or '[table]'"),
    (_TWICE, "a key or table is given twice, or inside a value", "give each table one header, and each key one value"),
    (("unescaped '\\'", "invalid hex value"), None, "write '\\\\' for a backslash, or put the text in single quotes"),
    (_LONG_INTEGER, "an integer of too many digits", "an integer has 64 bits: shorten it, or quote it"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """What is wrong between two offsets of a text."""

    message: str
    start: int
    end: int
    help: str | None = None


def explain(text: str, error: str, index: Index) -> Iterator[Mistake]:
    """Yield the mistakes behind the message of the parser."""
    where = _AT_LINE.search(error)
    message = error[: where.start()] if where else error.removesuffix(_AT_END)
    message = message[:1].lower() + message[1:]
    if message.startswith(_TWICE) and index.repeated:
        for first, (start, end) in index.repeated:
            line = text.count("\n", 0, first) + 1
            yield Mistake(
                message=f"{quoted(text[start:end])} is given twice",
                start=start,
                end=end,
                help=f"remove one; the first is in line {line}",
            )
        return
    at = _offset(text, int(where[1]), int(where[2])) if where else _without_place(text, message, index)
    if message.startswith(_ESCAPES):  # the parser stops behind the escape
        at = max(text.rfind("\\", 0, at), 0)
    better, remedy = _reworded(text, at, message)
    yield Mistake(message=f"not valid TOML: {better}", start=at, end=at + 1, help=remedy)


def _without_place(text: str, message: str, index: Index) -> int:
    """Return where the parser stopped when it does not say: at an integer too long for Python, or at the end."""
    if message.startswith(_LONG_INTEGER):
        for entry in index.entries.values():
            if _DIGITS.fullmatch(text, *entry.value):
                return entry.value[0]
    return len(text.rstrip())


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return start + column - 1


def _reworded(text: str, at: int, message: str) -> tuple[str, str | None]:
    if message == "invalid value":
        return _value(text[at : at + 200].partition("\n")[0].strip())
    for starts, better, remedy in _BETTER:
        if message.startswith(starts):
            return better or message, remedy
    return message, None


def _value(rest: str) -> tuple[str, str | None]:
    if not rest or rest.startswith("#"):
        return "a value is missing", 'write one after the \'=\', such as "text", 1, true or ["a", "b"]'
    if rest.startswith(("//", "/*")):
        return f"{quoted(rest[:2])} is not a value", "a comment starts with '#'"
    word = re.split(r"[\s,\]}#]", rest, maxsplit=1)[0]
    if word.lower() in {"true", "false"}:
        return f"{quoted(word)} is not a value", f"write {word.lower()}"
    has_quote = '"' in word or "'" in word
    return f"{quoted(word)} is not a value", None if has_quote else f'quote it: "{escaped(word)}"'
