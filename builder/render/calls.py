"""The calls of a rendered CMakeLists.txt that compile: of the binding, and of each component."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.config import Backend
from builder.config.components import Component
from builder.kernel import Kernel
from builder.render import arguments, own_objects
from builder.render.arguments import Arguments
from builder.render.own_objects import BINDING


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
    """All calls of one project."""

    binding: Call
    components: tuple[Call, ...]
    own_objects: bool
    """Whether some are compiled into objects of their own."""

    @property
    def has_file_flags(self) -> bool:
        """Whether any gives flags to single sources."""
        return any(call.file_flags for call in (self.binding, *self.components))

    @property
    def has_conditions(self) -> bool:
        """Whether any component has a condition."""
        return any(call.when for call in self.components)

    @property
    def may_be_empty(self) -> bool:
        """Whether every component has a condition."""
        return all(call.when for call in self.components)

    @property
    def has_libraries(self) -> bool:
        """Whether any is linked to libraries."""
        return any(call.libraries for call in (self.binding, *self.components))


def of(kernel: Kernel, backend: Backend, *, name_in: tuple[str, ...], only: tuple[str, ...]) -> Calls:
    """Return the calls of the project of a kernel whose globs are expanded."""
    config = kernel.config
    parts = config.components(backend)
    plain = {BINDING: arguments.binding(kernel, name_in=name_in)}
    plain |= {name: arguments.component(part, only) for name, part in parts.items()}
    own = own_objects.names(config, backend, plain)
    tables = {BINDING: config.torch or config.tvm_ffi, **parts}
    calls = {
        name: Call(
            name=name,
            arguments=_in(name, own, plain[name]),
            file_flags=tuple(_in(name, own, each) for each in arguments.file_flags(table)),
            libraries=arguments.libraries(table.libraries, backend),
            when=arguments.when(name, table, only) if isinstance(table, Component) else {},
        )
        for name, table in tables.items()
        if table is not None
    }
    empty = Call(name=BINDING, arguments={}, libraries={})
    binding = calls.pop(BINDING, empty)
    return Calls(binding=binding, components=tuple(calls.values()), own_objects=bool(own))


def _in(name: str, own: frozenset[str], given: Arguments) -> Mapping[str, str | tuple[arguments.Line, ...]]:
    """Name the objects that a call makes, where they are its own."""
    return {"OBJECTS_OF": name, **given} if name in own else given
