"""Convert dataclasses to JSON and back, by their annotations: `encode(value)`, and `decode(type, json)`.

A field is spelled with dashes in place of underscores. An enumeration is its value; a path, a version or another text
that is valid by construction is its text; a tuple is a list. `spelled` marks a field that differs from that:

    python: str | None = field(default=None, metadata=codec.spelled(sparse=True))
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, TypeVar, cast

T = TypeVar("T")


class DecodeError(ValueError):
    """JSON that does not describe a value of the wanted type."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    key: str
    type: Any
    default: Any
    """`dataclasses.MISSING` for a field that must be present."""
    sparse: bool = False
    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None


def spelled(
    *,
    key: str | None = None,
    sparse: bool = False,
    write: Callable[[Any], Any] | None = None,
    read: Callable[[Any], Any] | None = None,
) -> Mapping[str, Any]:
    """Return the metadata of a field with another spelling.

    Args:
        key: Its key.
        sparse: Leave it out where it has its default.
        write: Makes its JSON, in place of `encode`.
        read: Makes its value of JSON, in place of `decode`.
    """
    return {"json": {"key": key, "sparse": sparse, "write": write, "read": read}}


def encode(value: object) -> Any:
    """Return the JSON value of a dataclass, or of any type that a field may have; equal values have equal JSON."""
    found: Any = value
    match value:
        case Enum():
            found = value.value
        case None | bool() | int() | float():
            pass
        case Mapping():
            found = {str(encode(key)): encode(item) for key, item in value.items()}
        case str() | PurePath():
            found = str(value)
        case Sequence():
            found = [encode(item) for item in value]
        case _ if _is_text(type(value)):
            found = str(value)
        case _ if dataclasses.is_dataclass(value):
            cls: Any = type(value)
            items = ((each, getattr(value, each.name)) for each in _fields(cls))
            kept = ((each, item) for each, item in items if not (each.sparse and item == each.default))
            found = {each.key: (each.write or encode)(item) for each, item in kept}
        case _:
            raise TypeError(f"a value of {type(value).__name__} has no JSON")
    return found


def defaults(cls: type) -> dict[str, Any]:
    """Return the default values of a dataclass as JSON, by key."""
    return {each.key: encode(each.default) for each in _fields(cls) if each.default is not dataclasses.MISSING}


def decode(cls: type[T], value: object) -> T:
    """Return the value that `encode` turned into this JSON; unknown keys are ignored.

    Raises:
        DecodeError: the JSON describes something else.
    """
    return cast("T", _decode(cls, value, "value"))


def _decode(cls: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(cls)
    if cls is Any or cls is object:
        return value
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(cls), value, where)
    if origin is typing.Literal:
        if value not in typing.get_args(cls):
            raise DecodeError(f"{where} is {value!r}, not one of {typing.get_args(cls)}")
        return value
    if origin is not None:
        return _decode_many(origin, typing.get_args(cls), value, where)
    if typing.is_typeddict(cls) or (dataclasses.is_dataclass(cls) and not _is_text(cls)):
        return _decode_record(cls, value, where)
    return _decode_scalar(cls, value, where)


def _decode_union(kinds: Sequence[Any], value: Any, where: str) -> Any:
    """Decode the value as the first type of a union that accepts it; null is `None` if the union contains `None`."""
    if value is None and types.NoneType in kinds:
        return None
    errors = []
    for kind in kinds:
        try:
            return _decode(kind, value, where)
        except ValueError as error:  # noqa: PERF203  one of a few kinds
            errors.append(str(error))
    raise DecodeError("; ".join(errors))


def _decode_many(origin: type, arguments: Sequence[Any], value: Any, where: str) -> Any:
    if issubclass(origin, Mapping):
        key, item = arguments
        _require(dict, value, where)
        return {_decode(key, name, where): _decode(item, each, f"{where}.{name}") for name, each in value.items()}
    _require(list, value, where)
    if origin is tuple and arguments[-1] is not Ellipsis:
        pairs = zip(arguments, value, strict=True)
        return tuple(_decode(kind, each, where) for kind, each in pairs)
    make: Any = tuple if origin in (tuple, Sequence) else origin
    return make(_decode(arguments[0], each, f"{where}[{number}]") for number, each in enumerate(value))


def _decode_record(cls: Any, value: Any, where: str) -> Any:
    _require(dict, value, where)
    values = {}
    for each in _fields(cls):
        if each.key not in value:
            if each.default is dataclasses.MISSING:
                raise DecodeError(f"{where} has no '{each.key}'")
            continue
        found = value[each.key]
        values[each.name] = each.read(found) if each.read else _decode(each.type, found, f"{where}.{each.key}")
    return cls(**values)


def _decode_scalar(cls: Any, value: Any, where: str) -> Any:
    if cls in (str, int, bool, float, types.NoneType):
        if type(value) is not cls and not (cls is float and type(value) is int):
            raise DecodeError(f"{where} is {value!r}, not {cls.__name__}")
        return value
    if not issubclass(cls, Enum):
        _require(str, value, where)
    return cls(value)


def _require(kind: type, value: object, where: str) -> None:
    if not isinstance(value, kind):
        raise DecodeError(f"{where} is {value!r}, not a {kind.__name__}")


def _is_text(cls: Any) -> bool:
    """Whether values of a class are made from one string, as the classes in `builder.config.values` are."""
    return hasattr(cls, "pattern")


@cache
def _fields(cls: Any) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls)
    if typing.is_typeddict(cls):
        optional = cls.__optional_keys__
        missing = dataclasses.MISSING
        return tuple(_Field(name, name, kind, None if name in optional else missing) for name, kind in hints.items())
    found = []
    for each in dataclasses.fields(cls):
        default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
        spelling = {"key": None, **each.metadata.get("json", {})}
        key = spelling.pop("key") or each.name.replace("_", "-")
        if each.init:
            found.append(_Field(each.name, key, hints[each.name], default, **spelling))
    return tuple(found)
