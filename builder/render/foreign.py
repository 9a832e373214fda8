"""The foreign sources of a rendered project: fetched by CMake, or found in the folder that a variable names."""

from collections.abc import Iterator

from builder.config import Backend, Config
from builder.config.foreign import ForeignSource, foreign_path
from builder.render.arguments import Arguments
from builder.render.placed import PlacedEntry


def variable(name: str) -> str:
    """Return the CMake variable that names the folder of a foreign source, where there is one."""
    return f"FETCHCONTENT_SOURCE_DIR_{name.upper()}"


def used(config: Config, backend: Backend) -> tuple[str, ...]:
    """Return the names of the foreign sources that the build for a backend reads, in the config's order."""
    named = {_source(config, entry) for entry in _entries(config, backend)}
    return tuple(str(name) for name in config.sources if name in named)


def _source(config: Config, entry: str) -> str | None:
    if isinstance(entry, PlacedEntry):
        return entry.source
    found = foreign_path(entry, config.sources)
    return None if found is None else found.source


def calls(config: Config, backend: Backend) -> tuple[tuple[str, Arguments], ...]:
    """Return the name and the arguments of each call of `kernel_foreign_source`."""
    names = used(config, backend)
    return tuple((str(name), _arguments(source)) for name, source in config.sources.items() if name in names)


def _arguments(source: ForeignSource) -> Arguments:
    if source.git is None:
        return {"URL": str(source.url), "SHA256": str(source.sha256)}
    submodules = source.submodules
    given = "ALL" if submodules is True else tuple((path,) for path in submodules or ())
    return {"GIT": source.git, "REV": str(source.rev), "SUBMODULES": given}


def _entries(config: Config, backend: Backend) -> Iterator[str]:
    for _, table in config.tables(backend):
        yield from (*table.src, *table.include)
