"""Write the documents about the config from its declarations: the JSON Schema and the reference page."""

import inspect
import itertools
from collections.abc import Iterator
from enum import Enum
from typing import Any

from builder.config import shape
from builder.config.shape import Array, Choice, Constant, Field, Kind, OneOf, Record, Scalar, Table, Tagged
from builder.config.v5 import EDITION, Config

_DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]
_HEAD = f"""# The config: `build.toml`, edition {EDITION}

This page is generated: `builder schema --format markdown > docs/config.md`.

`builder schema` prints the same as a JSON Schema, from which editors complete and check the file. With Taplo, and
editors that use it: `builder schema > build.schema.json`, and `#:schema ./build.schema.json` as the first line of the
config. A table takes no other keys than those below. Older files, without `edition`, are read as well, and
`builder update` rewrites them. What `builder check` says is explained in [the list of codes](errors/README.md).
"""


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
    """Return all texts that a scalar class accepts; None if they cannot be listed."""
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
        own = {"description": docs[item.name]} if item.name in docs else {}
        properties[item.key] = {**_schema_of(item.kind, definitions), **own}
        if item.also is not None:
            old = {"description": f"Write '{item.key}'.", "deprecated": True}
            properties[item.also] = {**_schema_of(item.kind, definitions), **old}
        required += [item.key] if item.required else []
    schema: Schema = {"description": description(cls), "type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if needs := shape.needs(cls):
        schema["dependentRequired"] = {key: [other] for key, other in needs.items()}
    if one := shape.exactly_one(cls):
        schema["oneOf"] = [{"required": [key]} for key in one]
    if most := shape.at_most_one(cls):
        schema["not"] = {"anyOf": [{"required": list(pair)} for pair in itertools.combinations(most, 2)]}
    return schema


def _schema_of(kind: Kind, definitions: dict[str, Schema]) -> Schema:  # noqa: PLR0911  one for each kind
    match kind:
        case Scalar():
            return _scalar(kind, definitions)
        case Constant(value=value):
            return {"const": value}
        case OneOf(scalars=scalars):
            return {"anyOf": [_scalar(scalar, definitions) for scalar in scalars]}
        case Array(item=item):
            return {"type": "array", "items": _schema_of(item, definitions)}
        case Table():
            return _table(kind, definitions)
        case Record(type=cls):
            return _defined(cls, definitions)
        case Tagged():
            return {"oneOf": [_defined(cls, definitions, (kind.tag, name)) for name, cls in kind.variants]}
        case Choice(scalar=scalar, other=other):
            return {"anyOf": [_scalar(scalar, definitions), _schema_of(other, definitions)]}


def _defined(cls: type, definitions: dict[str, Schema], tag: tuple[str, str] | None = None) -> Schema:
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = _record(cls, definitions, tag)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _table(kind: Kind, definitions: dict[str, Schema]) -> Schema:
    if not isinstance(kind, Table):
        raise TypeError(f"{kind} has no keys of the user's choice")
    value = _schema_of(kind.value, definitions)
    names = values(kind.key)
    if names is not None:
        properties = dict.fromkeys(names, value)
        return {"type": "object", "properties": properties, "additionalProperties": False}
    keys = {"propertyNames": _pattern(kind.key)} if _pattern(kind.key) else {}
    return {"type": "object", **keys, "additionalProperties": value}


def _scalar(kind: Scalar, definitions: dict[str, Schema]) -> Schema:
    cls = kind.type
    if cls in (int, bool):
        minimum = {} if kind.minimum is None else {"minimum": kind.minimum}
        return {"type": "integer" if cls is int else "boolean", **minimum}
    if cls is str:
        return {"type": "string"}
    if cls.__name__ not in definitions:
        names = values(cls)
        limits = _pattern(cls) if names is None else {"enum": list(names)}
        definitions[cls.__name__] = {"description": description(cls), "type": "string", **limits}
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _pattern(cls: type) -> Schema:
    found: str = getattr(cls, "pattern", "")
    return {"pattern": f"^(?:{found})$"} if found else {}


def page() -> str:
    """Return the page as Markdown."""
    scalars: dict[str, type] = {}
    parts = [_HEAD, *_sections(Config, "", scalars), "## Values\n"]
    for name, cls in sorted(scalars.items()):
        parts.append(f"### {name}\n\n{description(cls)}\n")
        names, pattern = values(cls), getattr(cls, "pattern", "")
        if names is not None:
            parts.append(f"One of {', '.join(f'`{one}`' for one in names)}.\n" if names else "There is none yet.\n")
        elif pattern:
            parts.append(f"Matches `{pattern}`.\n")
    return "\n".join(parts)


def _sections(cls: type, name: str, scalars: dict[str, type]) -> Iterator[str]:
    """Yield the section of a table, and those of the tables inside it."""
    docs = shape.documentation(cls)
    rows, tables = [], []
    for item in shape.fields(cls):
        nested = isinstance(item.kind, Table) and isinstance(item.kind.value, Record | Tagged)
        if not name or item.rest or nested or isinstance(item.kind, Record):
            tables.append(item)
        else:
            rows.append(_row(item, docs.get(item.name, ""), scalars))
    if name:
        yield f"## `[{name}]`\n\n{description(cls)}\n"
    yield from _keys(rows, shape.exactly_one(cls) if name else ())
    for item in tables:
        yield from _nested(item, name, docs.get(item.name, ""), scalars)


def _nested(item: Field, parent: str, doc: str, scalars: dict[str, type]) -> Iterator[str]:
    name = f"{parent}.{item.key}" if parent else item.key
    match item.kind:
        case Record(type=cls):
            yield from _sections(cls, name, scalars)
        case Table(value=Tagged() as tagged):
            yield f"## `[{name}.<name>]`\n\n{doc}\n"
            yield from _variants(tagged, scalars)
        case Table(key=key, value=Record(type=cls)):
            _note(key, scalars)
            place = parent if item.rest else name
            called = "name" if key.__name__.endswith("Name") else key.__name__.lower()
            yield from _sections(cls, f"{place}.<{called}>", scalars)
        case Array(item=Record(type=cls)):
            yield from _sections(cls, f"[{name}]", scalars)
        case _:
            raise TypeError(f"no section describes {item.kind}")


def _variants(tagged: Tagged, scalars: dict[str, type]) -> Iterator[str]:
    names = ", ".join(f'`"{name}"`' for name, _ in tagged.variants)
    owners: dict[str, list[str]] = {}
    rows: dict[str, str] = {}
    for backend, cls in tagged.variants:
        docs = shape.documentation(cls)
        for item in shape.fields(cls):
            owners.setdefault(item.key, []).append(backend)
            rows[item.key] = _row(item, docs.get(item.name, ""), scalars)
    every = len(tagged.variants)
    first = [f"| `{tagged.tag}` | one of {names} | yes | Backend of the component. |"]
    yield from _keys([*first, *(row for key, row in rows.items() if len(owners[key]) == every)], ())
    for backend, _ in tagged.variants:
        own = [row for key, row in rows.items() if owners[key] == [backend]]
        if own:
            yield f'With `{tagged.tag} = "{backend}"` alone:\n'
            yield from _keys(own, ())


def _keys(rows: list[str], one: tuple[str, ...]) -> Iterator[str]:
    if rows:
        yield "\n".join(["| key | value | required | meaning |", "|---|---|---|---|", *rows]) + "\n"
    if one:
        yield f"Exactly one of {', '.join(f'`{key}`' for key in one)} is given.\n"


def _row(item: Field, doc: str, scalars: dict[str, type]) -> str:
    required = "yes" if item.required else "no"
    return f"| `{item.key}` | {_value(item.kind, scalars)} | {required} | {doc} |"


def _value(kind: Kind, scalars: dict[str, type]) -> str:  # noqa: PLR0911  one for each kind
    match kind:
        case Scalar(type=cls):
            return _note(cls, scalars)
        case Constant(value=value):
            return f"`{value}`"
        case OneOf(scalars=members):
            *names, last = (_value(member, scalars) for member in members)
            return f"{', '.join(names)} or {last}"
        case Array(item=item):
            return f"array of {_value(item, scalars)}"
        case Choice(scalar=scalar, other=other):
            return f"{_value(scalar, scalars)}, or {_value(other, scalars)}"
        case Table(key=key, value=value):
            return f"table of {_note(key, scalars)} = {_value(value, scalars)}"
        case Record(type=cls):
            keys = [f"`{item.key}` ({_value(item.kind, scalars)})" for item in shape.fields(cls)]
            one = shape.exactly_one(cls)
            last = f", of the last {len(one)} exactly one" if one else ""
            return f"table {{{', '.join(keys)}{last}}}"
        case Tagged():
            return "table"


def _note(cls: type, scalars: dict[str, type]) -> str:
    """Return the name of a scalar class, and remember it for the list of values."""
    plain = {str: "string", int: "integer", bool: "boolean"}
    if cls in plain:
        return plain[cls]
    scalars[cls.__name__] = cls
    return f"[{cls.__name__}](#{cls.__name__.lower()})"
