"""The compiling calls of a rendered CMakeLists.txt, and which of them need separate objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from builder.config import Backend, Config
from builder.config.source_tables import Component, ExtensionName, SourceTable
from builder.kernel.tree import HEADERS
from builder.render import arguments
from builder.render.arguments import Arguments

BINDING = "+binding"
"""The name of the binding's objects, which is not a valid name of a component."""
_Table = tuple[str, str | None, SourceTable]
"""The name of a table's objects, its extension, and the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Sources that are compiled with the same flags, libraries and condition."""

    name: str
    arguments: Arguments
    file_flags: tuple[Arguments, ...] = ()
    libraries: Arguments
    when: Arguments = field(default_factory=dict)
    """The condition of a component."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """All calls of one library."""

    binding: Call
    components: tuple[Call, ...]
    when: Arguments
    """The condition of an extension."""
    own_objects: bool
    """Whether some are compiled into objects of their own."""
    has_file_flags: bool
    """Whether any gives flags to single sources."""
    has_conditions: bool
    """Whether the library or any component has a condition."""
    may_be_absent: bool
    """Whether the library has a condition."""
    may_be_empty: bool
    """Whether every component has a condition."""
    has_libraries: bool
    """Whether any is linked to libraries."""


def of(
    config: Config,
    backend: Backend,
    *,
    name_in: Mapping[str | None, tuple[str, ...]],
    only: tuple[str, ...],
) -> Mapping[str | None, Calls]:
    """Return the calls of each library of a backend: the main one under None, and the extensions.

    Args:
        config: The config, with expanded globs.
        backend: The backend.
        name_in: The sources of each library that contain the name of its ops.
        only: The GPUs of a quick build.
    """
    tables = tuple(_tables(config, backend))
    plain = {
        name: arguments.component(table, only)
        if isinstance(table, Component)
        else arguments.binding(table, name_in=name_in[library])
        for name, library, table in tables
    }
    own = _own_objects(tables, plain)
    calls: dict[str | None, list[Call]] = {}
    for name, library, table in tables:
        objects: Arguments = {"OBJECTS_OF": name} if name in own else {}
        call = Call(
            name=name,
            arguments={**objects, **plain[name]},
            file_flags=tuple({**objects, **each} for each in arguments.file_flags(table)),
            libraries=arguments.libraries(table.libraries, backend),
            when=arguments.when({"NAME": name}, table.when, (table,), only) if isinstance(table, Component) else {},
        )
        calls.setdefault(library, []).append(call)
    found = {}
    for library, (binding, *components) in calls.items():
        every = (binding, *components)
        when: Arguments = {}
        if library is not None:
            parts = [part for part in config.components(backend).values() if part.extension == library]
            given = config.extension[ExtensionName(library)].when
            when = arguments.when({"EXTENSION": library}, given, parts, only)
        found[library] = Calls(
            binding=binding,
            components=tuple(components),
            when=when,
            own_objects=any(call.name in own for call in every),
            has_file_flags=any(call.file_flags for call in every),
            has_conditions=bool(when) or any(call.when for call in components),
            may_be_absent=bool(when),
            may_be_empty=bool(components) and all(call.when for call in components),
            has_libraries=any(call.libraries for call in every),
        )
    return found


def _tables(config: Config, backend: Backend) -> Iterator[_Table]:
    """Yield each table with the name of its objects and its extension; bindings come first."""
    for path, table in config.tables(backend):
        if isinstance(table, Component):
            yield str(path[-1]), table.extension, table
        elif path[0] == "extension":
            yield f"{BINDING}.{path[-1]}", str(path[-1]), table
        else:
            yield BINDING, None, table


def _own_objects(tables: Sequence[_Table], plain: Mapping[str, Arguments]) -> frozenset[str]:
    """Return the components and bindings that need separate objects.

    Without any key that only this builder reads, a source of two components is compiled once, with the flags of both,
    as by the public kernel-builder. A source of two libraries is compiled for each.
    """
    found: set[str] = set()
    for group in _groups(tables):
        settings = []
        for name, _, table in group:
            flags = {key: given for key, given in plain[name].items() if key not in ("SOURCES", "NAME_IN") and given}
            settings.append((flags, dict(table.file_flags)))
        ours = any(
            table.defines
            or table.libraries
            or table.exclude
            or table.file_flags
            or (isinstance(table, Component) and table.when)
            for _, _, table in group
        )
        differ = ours and any(each != settings[0] for each in settings)
        if differ or len({library for _, library, _ in group}) > 1:
            found |= {name for name, _, _ in group}
    return frozenset(found)


def _groups(tables: Sequence[_Table]) -> list[list[_Table]]:
    """Group the tables that share sources, directly or through other tables."""
    groups: list[tuple[list[_Table], set[str]]] = []
    for row in tables:
        members = [row]
        files = {str(path) for path in row[2].src if not path.endswith((*HEADERS, ".metal"))}
        apart = []
        for group in groups:
            if group[1] & files:
                members += group[0]
                files |= group[1]
            else:
                apart.append(group)
        groups = [*apart, (members, files)]
    return [members for members, _ in groups if len(members) > 1]
