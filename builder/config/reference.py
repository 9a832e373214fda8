"""The reference page of the config, from the declarations that the parser reads."""

from collections.abc import Iterator

from builder.config import shape
from builder.config.json_schema import description, values
from builder.config.shape import Array, Choice, Constant, Field, Kind, OneOf, Record, Scalar, Table, Tagged
from builder.config.v5 import EDITION, Config

_HEAD = f"""# The config: `build.toml`, edition {EDITION}

This page is generated: `builder schema --format markdown > docs/config.md`.

`builder schema` prints the same as a JSON Schema, from which editors complete and check the file. With Taplo, and
editors that use it: `builder schema > build.schema.json`, and `#:schema ./build.schema.json` as the first line of the
config. A table takes no other keys than those below. Older files, without `edition`, are read as well, and
`builder update` rewrites them. What `builder check` says is explained in [the list of codes](errors/README.md).
"""


def page() -> str:
    """Return the page as Markdown."""
    scalars: dict[str, type] = {}
    sections = list(_sections(Config, "", scalars))
    return "\n".join([_HEAD, *sections, "## Values\n", *_values(scalars)])


def _sections(cls: type, name: str, scalars: dict[str, type]) -> Iterator[str]:
    """Yield the section of one table, and those of the tables in it."""
    docs = shape.documentation(cls)
    scalar_fields = [item for item in shape.fields(cls) if name and not item.rest and not _is_table(item.kind)]
    tables = [item for item in shape.fields(cls) if item not in scalar_fields]
    if name:
        yield f"## `[{name}]`\n\n{description(cls)}\n"
    rows = [_row(item, docs.get(item.name, ""), scalars) for item in scalar_fields]
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
    """Return how a scalar class is called, and remember it for the list of values."""
    plain = {str: "string", int: "integer", bool: "boolean"}
    if cls in plain:
        return plain[cls]
    scalars[cls.__name__] = cls
    return f"[{cls.__name__}](#{cls.__name__.lower()})"


def _values(scalars: dict[str, type]) -> Iterator[str]:
    for name, cls in sorted(scalars.items()):
        yield f"### {name}\n\n{description(cls)}\n"
        names, pattern = values(cls), getattr(cls, "pattern", "")
        if names is not None:
            yield f"One of {', '.join(f'`{one}`' for one in names)}.\n" if names else "There is none yet.\n"
        elif pattern:
            yield f"Matches `{pattern}`.\n"


def _is_table(kind: Kind) -> bool:
    nested = isinstance(kind, Table) and isinstance(kind.value, Record | Tagged)
    return isinstance(kind, Record) or nested
