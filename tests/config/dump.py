"""Config → TOML: the inverse of parsing."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, cast

from builder import toml
from builder.config import shape
from builder.config.shape import Array, Choice, Constant, Field, Kind, OneOf, Record, Scalar, Table, Tagged
from builder.config.v5 import Config


def dump(config: Config) -> str:
    """Return the text of edition 5 that parses to `config`: one spelling for each kernel."""
    return "\n".join(_document(config)) + "\n"


def _document(config: Config) -> Iterator[str]:
    first = True
    for item in shape.fields(Config):
        value = getattr(config, item.name)
        if value == item.default:
            continue
        if isinstance(item.kind, Array):
            yield from _array_of_tables(item, value)
            first = False
            continue
        for header, lines in _tables((item.key,), item.kind, value):
            if not first:
                yield ""
            first = False
            yield f"[{'.'.join(header)}]"
            yield from lines


def _array_of_tables(item: Field, entries: Any) -> Iterator[str]:
    """Yield each entry as a table of its own; something stands before the first one."""
    for entry in entries:
        ((_, lines),) = _tables((item.key,), cast("Array", item.kind).item, entry)
        yield ""
        yield f"[[{item.key}]]"
        yield from lines


def _tables(header: tuple[str, ...], kind: Kind, value: Any) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the tables of a value, each with its own lines: those with tables below come after their parent."""
    match kind:
        case Table():
            if _is_table(kind.value):
                for key, entry in value.items():
                    yield from _tables((*header, toml.key(str(key))), kind.value, entry)
            else:
                yield header, [f"{toml.key(str(key))} = {_inline(kind.value, entry)}" for key, entry in value.items()]
        case Tagged():
            tag = f"{kind.tag} = {toml.spelled(str(getattr(value, kind.tag)))}"
            (_, lines), *below = _tables(header, Record(type(value)), value)
            yield header, [tag, *lines]
            yield from below
        case Record():
            inner = [item for item in shape.fields(kind.type) if _is_table(item.kind) and _given(item, value)]
            rest = [item for item in shape.fields(kind.type) if not _is_table(item.kind) and _given(item, value)]
            lines = [f"{item.key} = {_inline(item.kind, getattr(value, item.name))}" for item in rest]
            yield header, lines
            for item in inner:
                yield from _tables(header if item.rest else (*header, item.key), item.kind, getattr(value, item.name))
        case Array() | Choice() | Constant() | OneOf() | Scalar():
            raise TypeError(f"{kind} is not a table")


def _given(item: Field, value: object) -> bool:
    return item.required or getattr(value, item.name) != item.default


def _is_table(kind: Kind) -> bool:
    return isinstance(kind, (Table, Record, Tagged))


def _inline(kind: Kind, value: Any) -> str:
    match kind:
        case Constant():
            return str(kind.value)
        case Scalar() | OneOf():
            plain = value.value if isinstance(value, Enum) else value
            return toml.spelled(plain if isinstance(plain, int) else str(plain))
        case Array():
            return "[" + ", ".join(_inline(kind.item, item) for item in value) + "]"
        case Choice():
            return _inline(kind.other if isinstance(value, Mapping | tuple) else kind.scalar, value)
        case Table():
            return _braces(f"{toml.key(str(key))} = {_inline(kind.value, entry)}" for key, entry in value.items())
        case Record():
            given = (item for item in shape.fields(kind.type) if _given(item, value))
            return _braces(f"{item.key} = {_inline(item.kind, getattr(value, item.name))}" for item in given)
        case Tagged():
            raise TypeError(f"{kind} is written as a table of its own")


def _braces(pairs: Iterator[str]) -> str:
    inside = ", ".join(pairs)
    return f"{{ {inside} }}" if inside else "{}"
