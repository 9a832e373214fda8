"""The shape of a schema, read from the annotations of its dataclasses.

The parser, the JSON Schema, the reference page and the writer all walk what `fields` returns.
"""

import ast
import dataclasses
import datetime as dt
import inspect
import itertools
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T")


class Scalar(NamedTuple):
    """A value that is one TOML scalar: `str`, `int`, `bool`, an enum of strings, or a class made from a string.

    Such a class may have `pattern` (a regular expression) or `names()` (every valid value).
    """

    type: type
    minimum: int | None = None


class Constant(NamedTuple):
    """A value that must be this integer."""

    value: int


class Array(NamedTuple):
    """An array of values of one kind."""

    item: "Kind"


class Table(NamedTuple):
    """A table whose keys are names of the user's choice, or of an enum."""

    key: type
    value: "Kind"


class Record(NamedTuple):
    """A table with the keys of a dataclass."""

    type: type


class Tagged(NamedTuple):
    """A table whose key `tag` says which dataclass has its other keys: one of the `variants()` of their base."""

    tag: str
    variants: tuple[tuple[str, type], ...]


class OneOf(NamedTuple):
    """A TOML scalar of one of several types."""

    scalars: tuple[Scalar, ...]


class Choice(NamedTuple):
    """A scalar, or else a table or an array."""

    scalar: Scalar
    other: Table | Array


Kind = Scalar | Constant | Array | Table | Record | Tagged | Choice | OneOf


class Field(NamedTuple):
    """A key of a table."""

    name: str
    """The attribute of the dataclass."""
    key: str
    """The spelling of the key in the file."""
    also: str | None
    """Another accepted spelling."""
    kind: Kind
    required: bool
    rest: bool
    """Whether the keys of this table are written into its parent."""
    new: bool
    """Whether older schemas lack the key."""
    ours: bool
    """Whether only this builder reads the key; such a key is also new."""
    default: object


@cache
def fields(cls: type) -> tuple[Field, ...]:
    """Return the keys of a table, in the order of its dataclass."""
    hints = typing.get_type_hints(cls)
    found = []
    for field in dataclasses.fields(cls):
        facts, default = field.metadata, field.default
        if facts.get("internal"):
            continue
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        found.append(
            Field(
                name=field.name,
                key=facts.get("key", field.name.replace("_", "-")),
                also=facts.get("also"),
                kind=_kind_of(hints[field.name], minimum=facts.get("minimum")),
                required=facts.get("required", default is dataclasses.MISSING),
                rest=facts.get("rest", False),
                new="new" in facts or "ours" in facts,
                ours="ours" in facts,
                default=default,
            )
        )
    return tuple(found)


@cache
def documentation(cls: type) -> Mapping[str, str]:
    """Return the docstring below each field of a dataclass, also of its bases."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        if not inspect.get_annotations(base):
            continue  # it adds no field, and may have no source: a component without its own settings
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base)))
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for pair in itertools.pairwise(body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[name] = " ".join(text.split())
    return docs


def carried(old: object, new: type[T], **changes: object) -> T:
    """Make a `new` with the values of the same-named fields of `old`, and the changes."""
    names = {field.name for field in dataclasses.fields(cast("Any", new))} - changes.keys()
    kept = {name: getattr(old, name) for name in names if hasattr(old, name)}
    return new(**kept, **changes)


def kind_at(cls: type, path: Sequence[str | int]) -> Kind | None:
    """Return the kind of value at `path` in a document of the schema `cls`."""
    kinds: list[Kind] = [Record(cls)]
    for part in path:
        kinds = [below for kind in kinds for below in _below(kind, part)]
    return kinds[0] if kinds else None


def _below(kind: Kind, part: str | int) -> Iterator[Kind]:
    match kind:
        case Array(item=item):
            yield item
        case Table(value=value):
            yield value
        case Choice(other=other):
            yield from _below(other, part)
        case Record(type=cls):
            yield from (item.kind for item in fields(cls) if part in (item.key, item.also))
        case Tagged(variants=variants):
            yield from (below for _, cls in variants for below in _below(Record(cls), part))
        case Scalar() | Constant() | OneOf():
            return


def exactly_one(cls: type) -> tuple[str, ...]:
    """Return the keys of which a table must have exactly one."""
    return tuple(getattr(cls, "EXACTLY_ONE", ()))


def at_most_one(cls: type) -> tuple[str, ...]:
    """Return the keys of which a table may have at most one."""
    return tuple(getattr(cls, "AT_MOST_ONE", ()))


def needs(cls: type) -> Mapping[str, str]:
    """Return key -> another key that its table must have, too."""
    return dict(getattr(cls, "NEEDS", {}))


def _kind_of(hint: object, *, minimum: int | None = None) -> Kind:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union([argument for argument in arguments if argument is not types.NoneType], minimum)
    if origin is tuple:
        return Array(_kind_of(arguments[0]))
    if origin is typing.Literal:
        return Constant(arguments[0])
    if origin is not None and issubclass(origin, Mapping):
        return Table(arguments[0], _kind_of(arguments[1]))
    if not isinstance(hint, type):
        raise TypeError(f"{hint} is not an annotation of a schema")
    if hasattr(hint, "variants"):
        return Tagged("backend", hint.variants())
    return Record(hint) if dataclasses.is_dataclass(hint) else Scalar(hint, minimum)


def _union(members: list[object], minimum: int | None) -> Kind:
    if len(members) == 1:
        return _kind_of(members[0], minimum=minimum)
    kinds = [_kind_of(member) for member in members]
    scalars = tuple(kind for kind in kinds if isinstance(kind, Scalar))
    if len(scalars) == len(kinds):
        return OneOf(scalars)
    *_, other = kinds
    if len(scalars) != 1 or len(kinds) != 2 or not isinstance(other, Table | Array):  # noqa: PLR2004
        raise TypeError(f"{members} is not a scalar, or else a table or an array")
    return Choice(scalars[0], other)


_LONGEST = 80


def expected(kind: Kind) -> str:
    """Return the name of a kind of value, for messages."""
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
    """Return an example value of a kind, to be filled in."""
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
    """Return TOML's name for the type of `value`."""
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


def written_as(kind: Kind, value: Any, raw: str) -> str | None:
    """Return `raw`, which has another type, in the spelling of a `kind`; None if there is none."""
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
