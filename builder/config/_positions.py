"""Find the positions of keys and values in a TOML text, which parsers drop, and the mistakes in invalid TOML.

The scan takes a superset of TOML, so that it goes through every text the parser accepts, in linear time. It stops
silently at invalid text, which the parser reports. It refuses text that makes parsers hang or overflow: deep nesting
and endless dotted keys.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from builder import toml
from builder.errors import KeyPath
from builder.wording import escaped, quoted

DEEPEST = 64
"""The most levels of arrays and inline tables, and the most parts of a key."""

MOST = 50_000
"""The most keys and values of a config; the largest public one has 4,000."""

_DEPTH = f"more than {DEEPEST} levels of nesting"
_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"'([^'\n]*)'")
_BASIC = re.compile(r'"([^"\\\n]*)"')
_BASIC_STOP = re.compile(r'["\\\n]')
_MULTI_BASIC_STOP = re.compile(r'\\|"{3,5}')
_MULTI_LITERAL_STOP = re.compile(r"'{3,5}")
_SCALAR = re.compile(r"[^\s,#\[\]{}\"'=]+(?: [0-9][^\s,#\[\]{}\"'=]*)?")  # a date and a time may have a space between

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


class Offsets(NamedTuple):
    """Offsets of a key and of its value; for a table header, of its last part and of the whole header."""

    key: tuple[int, int]
    value: tuple[int, int]
    implicit: bool = False
    """The table exists only through a longer key: an explicit header, if one comes, is the better position."""


class Index(NamedTuple):
    """Every key and value of a text, by its path."""

    entries: Mapping[KeyPath, Offsets]
    repeated: Sequence[tuple[int, tuple[int, int]]]
    """Keys and tables that are given again: the offset of the first, and where the other is."""
    starts: Sequence[int]
    """Offset of the first character of each line."""
    refused: tuple[str, int] | None
    """Why the text must not be parsed, and where."""


class _StopScanError(Exception):
    """The text is not TOML from here on."""


class _RefusedError(Exception):
    """Reading further would take a parser too long or too deep."""


@lru_cache(maxsize=16)
def scan(text: str) -> Index:
    """Find every key and value of `text`, whose lines end in a line feed."""
    scanner = _Scanner(text)
    refused = None
    try:
        scanner.document()
    except _StopScanError:
        pass
    except _RefusedError as refusal:
        refused = (str(refusal), scanner.at)
    starts = (0, *(found.end() for found in re.finditer("\n", text)))
    return Index(scanner.entries, scanner.repeated, starts, refused)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.entries: dict[KeyPath, Offsets] = {}
        self.repeated: list[tuple[int, tuple[int, int]]] = []
        self.arrays: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        while True:
            self.skip(_SPACE)
            if self.at == len(self.text):
                return
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table, depth=0)

    def header(self) -> KeyPath:
        start = self.at
        is_array = self.text.startswith("[[", start)
        bracket = "]]" if is_array else "]"
        self.at += len(bracket)
        parts = self.key()
        if not self.text.startswith(bracket, self.at):
            raise _StopScanError
        self.at += len(bracket)
        header = (start, self.at)
        path: KeyPath = ()
        for name, span in parts[:-1]:
            path = self.current((*path, name))
            self.add(path, Offsets(span, header, implicit=True))
        name, span = parts[-1]
        path = (*path, name)
        if is_array:
            self.add(path, Offsets(span, header))
            number = self.arrays.get(path, 0)
            self.arrays[path] = number + 1
            path = (*path, number)
        elif path in self.arrays:
            self.repeated.append((self.entries[path].key[0], span))
        self.add(path, Offsets(span, header))
        return path

    def current(self, path: KeyPath) -> KeyPath:
        """Return the path of the last table, if `path` is an array of tables."""
        count = self.arrays.get(path)
        return path if count is None else (*path, count - 1)

    def pair(self, table: KeyPath, *, depth: int) -> None:
        parts = self.key()
        if self.text[self.at : self.at + 1] != "=":
            raise _StopScanError
        self.at += 1
        self.skip(_BLANK)
        path = (*table, *(name for name, _ in parts))
        last = parts[-1][1]
        for number in range(1, len(parts)):
            span = parts[number - 1][1]
            self.add(path[: len(table) + number], Offsets(span, (parts[0][1][0], last[1]), implicit=True))
        start = self.at
        self.value(path, depth=depth + 1)
        self.add(path, Offsets(last, (start, self.at)))

    def add(self, path: KeyPath, entry: Offsets) -> None:
        known = self.entries.get(path)
        if known is None or (known.implicit and not entry.implicit):
            self.entries[path] = entry
            if len(self.entries) > MOST:
                raise _RefusedError(f"more than {MOST:,} values")
        elif not entry.implicit and path not in self.arrays:
            self.repeated.append((known.key[0], entry.key))

    def key(self) -> list[tuple[str, tuple[int, int]]]:
        parts = []
        while True:
            self.skip(_BLANK)
            start = self.at
            name = self.key_part()
            parts.append((name, (start, self.at)))
            self.skip(_BLANK)
            if len(parts) > DEEPEST:
                self.at = start
                raise _RefusedError(_DEPTH)
            if self.text[self.at : self.at + 1] != ".":
                return parts
            self.at += 1

    def key_part(self) -> str:
        if bare := _BARE.match(self.text, self.at):
            self.at = bare.end()
            return bare[0]
        for simple in (_BASIC, _LITERAL):
            if found := simple.match(self.text, self.at):
                self.at = found.end()
                return found[1]
        start = self.at
        if self.text[start : start + 1] != '"':
            raise _StopScanError
        self.string()
        try:  # escapes: ask the parser
            return str(toml.loads(f"key = {self.text[start : self.at]}")["key"])
        except toml.TOMLDecodeError as error:
            raise _StopScanError from error

    def value(self, path: KeyPath, *, depth: int) -> None:
        if depth > DEEPEST:
            raise _RefusedError(_DEPTH)
        first = self.text[self.at : self.at + 1]
        if first in {'"', "'"}:
            self.string()
        elif first == "[":
            self.array(path, depth=depth)
        elif first == "{":
            self.inline_table(path, depth=depth)
        else:
            scalar = _SCALAR.match(self.text, self.at)
            if scalar is None:
                raise _StopScanError
            self.at = scalar.end()

    def array(self, path: KeyPath, *, depth: int) -> None:
        self.at += 1
        number = 0
        while True:
            self.skip(_SPACE)
            if self.text[self.at : self.at + 1] == "]":
                self.at += 1
                return
            start = self.at
            item = (*path, number)
            self.value(item, depth=depth + 1)
            self.add(item, Offsets((start, self.at), (start, self.at)))
            number += 1
            self.skip(_SPACE)
            self.separator(end="]")

    def inline_table(self, path: KeyPath, *, depth: int) -> None:
        self.at += 1
        while True:
            self.skip(_SPACE)
            if self.text[self.at : self.at + 1] == "}":
                self.at += 1
                return
            self.pair(path, depth=depth)
            self.skip(_SPACE)
            self.separator(end="}")

    def separator(self, *, end: str) -> None:
        found = self.text[self.at : self.at + 1]
        if found == ",":
            self.at += 1
        elif found != end:
            raise _StopScanError

    def string(self) -> None:
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            self.at += 3
            self.until(_MULTI_BASIC_STOP if quote == '"' else _MULTI_LITERAL_STOP)
            return
        simple = (_BASIC if quote == '"' else _LITERAL).match(self.text, self.at)
        if simple is not None:
            self.at = simple.end()
        elif quote == '"':
            self.at += 1
            self.until(_BASIC_STOP)
        else:
            raise _StopScanError

    def until(self, stop: re.Pattern[str]) -> None:
        while found := stop.search(self.text, self.at):
            self.at = found.end()
            if found[0] == "\n":
                raise _StopScanError
            if found[0] != "\\":
                return
            self.at += 1  # the escaped character, which may be a quote
        raise _StopScanError

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()


class Mistake(NamedTuple):
    """A mistake between two offsets of a text."""

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
            twice = f"{quoted(text[start:end])} is given twice"
            yield Mistake(message=twice, start=start, end=end, help=f"remove one; the first is in line {line}")
        return
    at = len(text.rstrip())
    if where:
        before = text.split("\n")[: int(where[1]) - 1]
        at = sum(len(line) + 1 for line in before) + int(where[2]) - 1
    elif message.startswith(_LONG_INTEGER):  # the parser does not say where
        longs = (entry.value[0] for entry in index.entries.values() if _DIGITS.fullmatch(text, *entry.value))
        at = next(longs, at)
    if message.startswith(_ESCAPES):  # the parser stops after the escape
        at = max(text.rfind("\\", 0, at), 0)
    better, remedy = _reworded(text, at, message)
    yield Mistake(message=f"not valid TOML: {better}", start=at, end=at + 1, help=remedy)


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
