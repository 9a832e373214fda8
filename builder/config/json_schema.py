"""The JSON Schema of a config, from the declarations that the parser reads."""

import inspect
from collections.abc import Iterable
from enum import Enum
from typing import Any

from builder.config import shape
from builder.config.shape import Array, Choice, Constant, Field, Kind, OneOf, Record, Scalar, Table, Tagged
from builder.config.v5 import EDITION, Config

_DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def json_schema() -> Schema:
    """Return the schema of the current edition, as a JSON document."""
    definitions: dict[str, Schema] = {}
    top = _record(Config, definitions)
    head = {"$schema": _DRAFT, "title": f"build.toml, edition {EDITION}"}
    return {**head, **top, "$defs": {name: definitions[name] for name in sorted(definitions)}}


def description(cls: type) -> str:
    """Return the docstring of a class as one line."""
    return " ".join((inspect.getdoc(cls) or "").split())


def values(cls: type) -> tuple[str, ...] | None:
    """Return every text that a scalar class takes, where they can be counted."""
    if issubclass(cls, Enum):
        return tuple(str(member.value) for member in cls)
    names = getattr(cls, "names", None)
    return None if names is None else tuple(names())


def _record(cls: type, definitions: dict[str, Schema], tag: tuple[str, str] | None = None) -> Schema:
    docs = shape.documentation(cls)
    properties: Schema = {}
    required: list[str] = []
    if tag is not None:
        properties[tag[0]] = {"const": tag[1], "description": f"Backend of the component: {tag[1]}."}
        required.append(tag[0])
    for item in shape.fields(cls):
        if item.rest:
            properties |= _table(item.kind, definitions)["properties"]
            continue
        properties |= _property(item, docs.get(item.name, ""), definitions)
        required += [item.key] if item.required else []
    schema: Schema = {"description": description(cls), "type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False, **_groups(cls)}


def _property(item: Field, doc: str, definitions: dict[str, Schema]) -> Schema:
    own = {"description": doc} if doc else {}
    found = {item.key: {**_kind(item.kind, definitions), **own}}
    if item.also is not None:
        found[item.also] = {**_kind(item.kind, definitions), "description": f"Write '{item.key}'.", "deprecated": True}
    return found


def _groups(cls: type) -> Schema:
    one, most = shape.exactly_one(cls), shape.at_most_one(cls)
    needs = {key: [other] for key, other in shape.needs(cls).items()}
    groups: Schema = {"dependentRequired": needs} if needs else {}
    if one:
        groups["oneOf"] = [{"required": [key]} for key in one]
    if most:
        pairs = [[first, second] for index, first in enumerate(most) for second in most[index + 1 :]]
        groups["not"] = {"anyOf": [{"required": pair} for pair in pairs]}
    return groups


def _kind(kind: Kind, definitions: dict[str, Schema]) -> Schema:  # noqa: PLR0911  one for each kind
    match kind:
        case Scalar():
            return _scalar(kind, definitions)
        case Constant(value=value):
            return {"const": value}
        case OneOf(scalars=scalars):
            return {"anyOf": [_scalar(scalar, definitions) for scalar in scalars]}
        case Array(item=item):
            return {"type": "array", "items": _kind(item, definitions)}
        case Table():
            return _table(kind, definitions)
        case Record(type=cls):
            return _defined(cls, definitions)
        case Tagged():
            return {"oneOf": [_defined(cls, definitions, (kind.tag, name)) for name, cls in kind.variants]}
        case Choice(scalar=scalar, other=other):
            return {"anyOf": [_scalar(scalar, definitions), _kind(other, definitions)]}


def _defined(cls: type, definitions: dict[str, Schema], tag: tuple[str, str] | None = None) -> Schema:
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = _record(cls, definitions, tag)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _table(kind: Kind, definitions: dict[str, Schema]) -> Schema:
    if not isinstance(kind, Table):
        raise TypeError(f"{kind} has no keys of the user's choice")
    value = _kind(kind.value, definitions)
    names = values(kind.key)
    if names is not None:
        properties = dict.fromkeys(names, value)
        return {"type": "object", "properties": properties, "additionalProperties": False}
    keys = {"propertyNames": {"pattern": _anchored(kind.key)}} if _pattern(kind.key) else {}
    return {"type": "object", **keys, "additionalProperties": value}


def _scalar(kind: Scalar, definitions: dict[str, Schema]) -> Schema:
    cls = kind.type
    if cls in (int, bool):
        minimum = {} if kind.minimum is None else {"minimum": kind.minimum}
        return {"type": "integer" if cls is int else "boolean", **minimum}
    if cls is str:
        return {"type": "string"}
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = {"description": description(cls), "type": "string", **_limits(cls)}
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _limits(cls: type) -> Schema:
    names: Iterable[str] | None = values(cls)
    if names is not None:
        return {"enum": list(names)}
    return {"pattern": _anchored(cls)} if _pattern(cls) else {}


def _pattern(cls: type) -> str:
    found: str = getattr(cls, "pattern", "")
    return found


def _anchored(cls: type) -> str:
    return f"^(?:{_pattern(cls)})$"
