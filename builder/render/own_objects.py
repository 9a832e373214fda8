"""Which components are compiled into objects of their own: those that share a source with another, in another way."""

from collections.abc import Iterator, Mapping

from builder.config import Backend, Config
from builder.config.components import Component
from builder.config.text import KeyPath
from builder.kernel.source_globs import HEADERS, SourceTable
from builder.render.arguments import Arguments

BINDING = "+binding"
"""The name of the binding's objects, which no component can have."""


def binding(extension: str | None) -> str:
    """Return the name of the objects of a binding: that of an extension, or the main one for None."""
    return BINDING if extension is None else f"{BINDING}.{extension}"


def key(path: KeyPath) -> str:
    """Return the name of the objects of a table: of a component its own, of a binding one that no component has."""
    match path:
        case ("kernel", name):
            return str(name)
        case ("extension", name):
            return binding(str(name))
        case _:
            return binding(None)


def names(config: Config, backend: Backend, arguments: Mapping[str, Arguments]) -> frozenset[str]:
    """Return the components, and `BINDING`, that have objects of their own.

    Without any of the keys that only this builder reads, a source of two components is compiled once, with the flags of
    both, as by the public kernel-builder; one of two libraries is compiled for each.

    Args:
        config: With expanded globs.
        backend: Whose components they are.
        arguments: Of the call of each.
    """
    tables = dict(_tables(config, backend))
    found: set[str] = set()
    for group in _groups({name: _sources(table) for name, table in tables.items()}):
        settings = [_settings(tables[name], arguments[name]) for name in group]
        differ = any(_has_own_keys(tables[name]) for name in group) and any(each != settings[0] for each in settings)
        if differ or len({_library(name, tables[name]) for name in group}) > 1:
            found |= group
    return frozenset(found)


def _tables(config: Config, backend: Backend) -> Iterator[tuple[str, SourceTable]]:
    return ((key(path), table) for path, table in config.tables(backend))


def _library(name: str, table: SourceTable) -> str:
    """Return the extension that a table is of; empty for the main library."""
    return str(table.extension or "") if isinstance(table, Component) else name.removeprefix(BINDING).lstrip(".")


def _sources(table: SourceTable) -> frozenset[str]:
    return frozenset(path for path in table.src if not path.endswith((*HEADERS, ".metal")))


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
