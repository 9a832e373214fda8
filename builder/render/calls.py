"""The calls of a rendered CMakeLists.txt that compile, and which of them have objects of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from builder.config import Backend, Config
from builder.config.source_tables import Component, ExtensionName, SourceTable
from builder.config.text import KeyPath
from builder.kernel.tree import HEADERS
from builder.render import arguments
from builder.render.arguments import Arguments

BINDING = "+binding"
"""The name of the binding's objects, which no component can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The sources that are compiled in one way, with their flags, libraries and condition."""

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
    own_objects: bool
    """Whether some are compiled into objects of their own."""
    when: Arguments = field(default_factory=dict)
    """The condition of an extension."""

    @property
    def has_file_flags(self) -> bool:
        """Whether any gives flags to single sources."""
        return any(call.file_flags for call in (self.binding, *self.components))

    @property
    def has_conditions(self) -> bool:
        """Whether the library or any component has a condition."""
        return bool(self.when) or any(call.when for call in self.components)

    @property
    def may_be_absent(self) -> bool:
        """Whether the library has a condition."""
        return bool(self.when)

    @property
    def may_be_empty(self) -> bool:
        """Whether every component has a condition."""
        return bool(self.components) and all(call.when for call in self.components)

    @property
    def has_libraries(self) -> bool:
        """Whether any is linked to libraries."""
        return any(call.libraries for call in (self.binding, *self.components))


def of(
    config: Config,
    backend: Backend,
    *,
    name_in: Mapping[str | None, tuple[str, ...]],
    only: tuple[str, ...],
) -> Mapping[str | None, Calls]:
    """Return the calls of each library: of the main one, by None, and of the extensions of a backend.

    Args:
        config: With expanded globs.
        backend: What they are compiled for.
        name_in: The sources of each library that have the name of its ops.
        only: The GPUs of a quick build.
    """
    tables = {objects_of(path): table for path, table in config.tables(backend)}
    libraries = {binding_objects(name): name for name in (None, *config.extensions(backend))}
    plain = {
        name: arguments.component(table, only)
        if isinstance(table, Component)
        else arguments.binding(table, name_in=name_in[libraries[name]])
        for name, table in tables.items()
    }
    own = own_objects(config, backend, plain)
    found = {
        name: Call(
            name=name,
            arguments=_in(name, own, plain[name]),
            file_flags=tuple(_in(name, own, each) for each in arguments.file_flags(table)),
            libraries=arguments.libraries(table.libraries, backend),
            when=arguments.when(name, table, only) if isinstance(table, Component) else {},
        )
        for name, table in tables.items()
    }
    return {
        library: replace(_of_library(config, backend, library, found, own), when=_when(config, backend, library, only))
        for library in libraries.values()
    }


def _when(config: Config, backend: Backend, library: str | None, only: tuple[str, ...]) -> Arguments:
    if library is None:
        return {}
    parts = [part for part in config.components(backend).values() if part.extension == library]
    return arguments.when_of_extension(library, config.extension[ExtensionName(library)], parts, only)


def _of_library(
    config: Config, backend: Backend, name: str | None, found: Mapping[str, Call], own: frozenset[str]
) -> Calls:
    binding = binding_objects(name)
    parts = [key for key, part in config.components(backend).items() if part.extension == name]
    empty = Call(name=binding, arguments={}, libraries={})
    return Calls(
        binding=found.get(binding, empty),
        components=tuple(found[key] for key in parts),
        own_objects=not own.isdisjoint((binding, *parts)),
    )


def _in(name: str, own: frozenset[str], given: Arguments) -> Mapping[str, str | tuple[arguments.Line, ...]]:
    """Name the objects that a call makes, where they are its own."""
    return {"OBJECTS_OF": name, **given} if name in own else given


def binding_objects(extension: str | None) -> str:
    """Return the name of the objects of a binding: that of an extension, or the main one for None."""
    return BINDING if extension is None else f"{BINDING}.{extension}"


def objects_of(path: KeyPath) -> str:
    """Return the name of the objects of a table: of a component its own, of a binding one that no component has."""
    match path:
        case ("kernel", name):
            return str(name)
        case ("extension", name):
            return binding_objects(str(name))
        case _:
            return binding_objects(None)


def own_objects(config: Config, backend: Backend, arguments: Mapping[str, Arguments]) -> frozenset[str]:
    """Return the components, and `BINDING`, that have objects of their own.

    Without any of the keys that only this builder reads, a source of two components is compiled once, with the flags of
    both, as by the public kernel-builder; one of two libraries is compiled for each.

    Args:
        config: With expanded globs.
        backend: Whose components they are.
        arguments: Of the call of each.
    """
    tables = {objects_of(path): table for path, table in config.tables(backend)}
    sources = {
        name: frozenset(path for path in table.src if not path.endswith((*HEADERS, ".metal")))
        for name, table in tables.items()
    }
    found: set[str] = set()
    for group in _groups(sources):
        settings = [_settings(tables[name], arguments[name]) for name in group]
        differ = any(_has_own_keys(tables[name]) for name in group) and any(each != settings[0] for each in settings)
        if differ or len({_library(name, tables[name]) for name in group}) > 1:
            found |= group
    return frozenset(found)


def _library(name: str, table: SourceTable) -> str:
    """Return the extension that a table is of; empty for the main library."""
    return str(table.extension or "") if isinstance(table, Component) else name.removeprefix(BINDING).lstrip(".")


def _has_own_keys(table: SourceTable) -> bool:
    conditional = isinstance(table, Component) and table.when is not None
    return bool(conditional or table.defines or table.libraries or table.exclude or table.file_flags)


def _settings(table: SourceTable, arguments: Arguments) -> object:
    own = {keyword: values for keyword, values in arguments.items() if keyword not in ("SOURCES", "NAME_IN") and values}
    return own, dict(table.file_flags)


def _groups(sources: Mapping[str, frozenset[str]]) -> list[set[str]]:
    """Return the names that share sources, directly or by others."""
    groups: list[tuple[set[str], set[str]]] = []
    for name, files in sources.items():
        sharing = [group for group in groups if group[1] & files]
        groups = [group for group in groups if group not in sharing]
        groups.append(
            (
                {name, *(each for group in sharing for each in group[0])},
                {*files, *(file for group in sharing for file in group[1])},
            )
        )
    return [members for members, _ in groups if len(members) > 1]
