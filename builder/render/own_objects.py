"""Which components are compiled into objects of their own: those that share a source with another, in another way."""

from collections.abc import Iterator, Mapping

from builder.config import Backend, Config
from builder.config.components import Component
from builder.config.v5 import Torch, TvmFfi
from builder.kernel.source_globs import HEADERS
from builder.render.arguments import Arguments

BINDING = "+binding"
"""The name of the binding's objects, which no component can have."""

Table = Torch | TvmFfi | Component


def names(config: Config, backend: Backend, arguments: Mapping[str, Arguments]) -> frozenset[str]:
    """Return the components, and `BINDING`, that have objects of their own.

    Without any of the keys that only this builder reads, a source of two components is compiled once, with the flags of
    both, as by the public kernel-builder.

    Args:
        config: With expanded globs.
        backend: Whose components they are.
        arguments: Of the call of each.
    """
    tables = dict(_tables(config, backend))
    found: set[str] = set()
    for group in _groups({name: _sources(table) for name, table in tables.items()}):
        settings = [_settings(tables[name], arguments[name]) for name in group]
        if any(_has_own_keys(tables[name]) for name in group) and any(each != settings[0] for each in settings):
            found |= group
    return frozenset(found)


def _tables(config: Config, backend: Backend) -> Iterator[tuple[str, Table]]:
    binding = config.torch or config.tvm_ffi
    if binding is not None:
        yield BINDING, binding
    yield from config.components(backend).items()


def _sources(table: Table) -> frozenset[str]:
    return frozenset(path for path in table.src if not path.endswith((*HEADERS, ".metal")))


def _has_own_keys(table: Table) -> bool:
    conditional = isinstance(table, Component) and table.when is not None
    return bool(conditional or table.defines or table.libraries or table.exclude or table.file_flags)


def _settings(table: Table, arguments: Arguments) -> object:
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
