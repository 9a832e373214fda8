"""Files and directories that a config lists."""

import posixpath
from collections.abc import Iterator

from builder.config import Config
from builder.config.sources import foreign_path, writes_below
from builder.config.text import KeyPath
from builder.errors import ConfigError, Problem
from builder.kernel import Kernel
from builder.kernel.source_set import source_set
from builder.kernel.tree import Tree
from builder.wording import quoted


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield files that a build would miss or that are listed twice, and include directories that do not exist."""
    try:
        source_set(kernel)
    except ConfigError as error:
        yield from error.problems
    yield from _twice(kernel)
    tree = Tree.of(kernel.root)
    for path, entry in included(kernel.config):
        elsewhere = foreign_path(entry, kernel.config.sources) is not None or writes_below(
            entry, kernel.config.generate
        )
        if not elsewhere and not tree.is_directory(entry):
            yield kernel.source.problem(
                "B105",
                f"include directory {quoted(entry)} does not exist",
                path=path,
                severity="warning",
                help="it is relative to the directory of 'build.toml'",
            )


def listed(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield each entry of a `src` list, with its place."""
    return _entries(config, "src")


def included(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield each entry of an `include` list, with its place."""
    return _entries(config, "include")


def _entries(config: Config, key: str) -> Iterator[tuple[KeyPath, str]]:
    for table, part in config.tables():
        entries: tuple[str, ...] = getattr(part, key)
        yield from (((*table, key, index), entry) for index, entry in enumerate(entries))


def _twice(kernel: Kernel) -> Iterator[Problem]:
    seen: set[tuple[KeyPath, str]] = set()
    for path, entry in listed(kernel.config):
        here = (path[:-1], posixpath.normpath(entry))
        if here in seen:
            yield kernel.source.problem(
                "B104",
                f"file {quoted(entry)} is listed twice",
                path=path,
                severity="warning",
                help="remove one of the two",
            )
        seen.add(here)
