"""The calls of a rendered CMakeLists.txt that compile: of the binding, and of each component."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from builder.config import Backend, Config
from builder.config.components import Component
from builder.config.extensions import ExtensionName
from builder.render import arguments, own_objects
from builder.render.arguments import Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is compiled in one way, and what comes with it."""

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
    tables = {own_objects.key(path): table for path, table in config.tables(backend)}
    libraries = {own_objects.binding(name): name for name in (None, *config.extensions(backend))}
    plain = {
        name: arguments.component(table, only)
        if isinstance(table, Component)
        else arguments.binding(table, name_in=name_in[libraries[name]])
        for name, table in tables.items()
    }
    own = own_objects.names(config, backend, plain)
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
    binding = own_objects.binding(name)
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
