"""Edit a TOML document, and keep the rest of its text.

A table may be written as `[general]`, as `general = { … }`, or as `general.name = …` in many places. tomlkit keeps each
form; these functions find the place to edit in any of them. Each function parses the text again, since tomlkit's
look-up tables do not follow edits of a body.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Item, Key, Table, Whitespace

Path = tuple[str, ...]
Body = list[tuple[Key | None, Item]]
Value = str | int | list[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableEntry:
    """An entry of a table: the table, and the index of the entry."""

    table: Table | InlineTable | None
    """None for the document itself."""
    body: Body
    index: int

    @property
    def item(self) -> Item:
        return self.body[self.index][1]


def is_inline(text: str, path: Path) -> bool:
    """Whether a table is written in braces."""
    return any(isinstance(entry.item, InlineTable) for entry in _entries(tomlkit.parse(text), path))


def remove(text: str, path: Path) -> str:
    """Remove a key with the comment after it, or a table with its content."""
    document = tomlkit.parse(text)
    for entry in reversed(list(_entries(document, path))):
        if isinstance(entry.table, InlineTable):
            entry.table.remove(path[-1])
        else:
            del entry.body[entry.index]
    return document.as_string()


def change(text: str, path: Path, value: Value, *, key: str | None = None) -> str:
    """Set the value of a key, and rename it if `key` is given; the comment after it stays.

    A name with a dot makes a table: renaming `minver` in `general` to `cuda.minver` gives `general.cuda.minver`.
    """
    document = tomlkit.parse(text)
    entry = next(_entries(document, path))
    old_key, old = entry.body[entry.index]
    item = _item(value)
    item.trivia.indent, item.trivia.trail = old.trivia.indent, old.trivia.trail
    item.trivia.comment, item.trivia.comment_ws = old.trivia.comment, old.trivia.comment_ws
    entry.body[entry.index] = (old_key if key is None else _key(key, old_key), item)
    return document.as_string()


def add(text: str, path: Path, value: Value, *, after: str) -> str:
    """Add a key after another one of the same table."""
    document = tomlkit.parse(text)
    sibling = list(_entries(document, (*path[:-1], after)))[-1]
    item = _item(value)
    if isinstance(sibling.table, InlineTable):
        sibling.table.append(_key(path[-1], None), item)
    else:
        item.trivia.indent = sibling.item.trivia.indent
        sibling.body.insert(sibling.index + 1, (_key(path[-1], sibling.body[sibling.index][0]), item))
    return document.as_string()


def duplicate(text: str, path: Path, name: str) -> str:
    """Copy a table under another name, directly after the original."""
    document = tomlkit.parse(text)
    entries = list(_entries(document, path))
    last = entries[-1]
    for number, entry in enumerate(entries, start=1):
        key, item = _dotted(name) if _is_dotted(entry) else _key(name, None), copy.deepcopy(entry.item)
        if isinstance(last.table, InlineTable):
            last.table.append(name, item)
            continue
        last.body.insert(last.index + number, (key, item))
        if isinstance(item, Table) and isinstance(entry.item, Table) and not _is_dotted(entry):
            _leave_the_rest(entry.item.value.body)
            item.trivia.indent = "\n"
            item.display_name = None
    return document.as_string()


def rename(text: str, name: str, new: str) -> str:
    """Rename a table of the root, everywhere in the text."""
    document = tomlkit.parse(text)
    for entry in _entries(document, (name,)):
        key, item = entry.body[entry.index]
        if _is_dotted(entry):
            entry.body[entry.index] = (_dotted(new), item)
            continue
        if isinstance(item, Table):
            item = Table(item.value, item.trivia, False, None, new)  # noqa: FBT003  tomlkit's signature
        entry.body[entry.index] = (_key(new, key), item)
    return document.as_string()


def add_table(text: str, name: str) -> str:
    """Add an empty table to the end of a document."""
    return f"{text}\n[{name}]\n"


def _entries(document: tomlkit.TOMLDocument, path: Path) -> Iterator[_TableEntry]:
    """Yield the places of a key, or of each part of a table."""
    yield from _within(None, document.body, path)


def _within(table: Table | InlineTable | None, body: Body, path: Path) -> Iterator[_TableEntry]:
    for index, (key, item) in enumerate(body):
        if key is None or key.key != path[0]:
            continue
        if len(path) == 1:
            yield _TableEntry(table=table, body=body, index=index)
        elif isinstance(item, Table | InlineTable):
            yield from _within(item, item.value.body, path[1:])


def _is_dotted(entry: _TableEntry) -> bool:
    key = entry.body[entry.index][0]
    return key is not None and key.is_dotted()


def _dotted(name: str) -> Key:
    """Make the first part of a dotted key; tomlkit has no constructor for it."""
    key = tomlkit.parse(f"{tomlkit.key(name).as_string()}.x = 0").body[0][0]
    if key is None:
        raise AssertionError
    return key


def _leave_the_rest(first: Body) -> None:
    """Move the blank lines after the last key to the second of two equal tables."""
    end = max((index for index, (key, _) in enumerate(first) if key is not None), default=-1) + 1
    while end < len(first) and not isinstance(first[end][1], Whitespace):
        end += 1
    del first[end:]


def _key(name: str, other: Key | None) -> Key:
    """Make a key with the spacing of another one around its equals sign."""
    parts = name.split(".")
    key: Key = tomlkit.key(name) if len(parts) == 1 else tomlkit.key(parts)
    if other is not None and other.sep:
        before = other.as_string()  # with the space before the equals sign
        key.sep = before[len(before.rstrip()) :] + other.sep
    return key


def _item(value: Value) -> Item:
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    table = tomlkit.inline_table()
    for key, entry in value.items():
        table.append(key, entry)
    return table
