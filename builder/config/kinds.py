"""What the kinds of values of a config are called, and how to write them."""

import datetime as dt
from typing import Any

from builder.config.shape import Array, Choice, Constant, Kind, OneOf, Record, Scalar, Table, Tagged

_LONGEST = 80


def expected(kind: Kind) -> str:
    """Return what a value of a kind is called."""
    match kind:
        case Constant():
            return f"the integer {kind.value}"
        case Array():
            return f"an array of {expected(kind.item).removeprefix('a ').removeprefix('an ')}s"
        case Table() | Record() | Tagged():
            return "a table"
        case Choice():
            return f"{expected(kind.scalar)} or {expected(kind.other)}"
        case OneOf(scalars=scalars):
            *names, last = map(expected, scalars)
            return f"{', '.join(names)} or {last}"
        case Scalar():
            return {int: "an integer", bool: "a boolean"}.get(kind.type, "a string")


def example(kind: Kind) -> str:
    """Return a value of a kind, to be filled in."""
    match kind:
        case Constant():
            return str(kind.value)
        case Array():
            return "[…]"
        case Scalar():
            return {int: "1", bool: "true"}.get(kind.type, '"…"')
        case OneOf(scalars=scalars):
            return example(scalars[0])
        case Table() | Record() | Tagged() | Choice():
            return "{…}"


def type_name(value: object) -> str:
    """Return what TOML calls the type of `value`."""
    names: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a float"),
        (dt.datetime, "a date and time"),
        (dt.date, "a date"),
        (dt.time, "a time"),
        (list, "an array"),
        (dict, "a table"),
    )
    return next(name for cls, name in names if isinstance(value, cls))


def remedy(kind: Kind, value: Any, raw: str) -> str | None:
    """Return how `raw`, which is of another type, would be written as a `kind`."""
    short = len(raw) < _LONGEST and raw.isprintable()
    match kind:
        case Constant():
            return f"write {kind.value}"
        case Array() if not isinstance(value, dict):
            return f"write [{raw}]" if short else "put it in brackets"
        case Scalar() if kind.type is int and isinstance(value, str) and value.isdecimal():
            return f"write {value[:20]} without quotes"
        case Scalar() if kind.type not in (int, bool) and not isinstance(value, (dict, list)):
            return f'quote it: "{raw}"' if short else "quote it"
        case _:
            return None
