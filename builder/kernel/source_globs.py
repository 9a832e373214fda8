"""What the globs of `exclude` and `file-flags` name among the sources of one table of a config."""

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from builder.config.bindings import Binding
from builder.config.components import Component
from builder.config.text import KeyPath
from builder.config.values import ProjectPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.kernel.tree import Matcher
from builder.wording import quoted

SourceTable = Binding | Component
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".hip.h", ".inc", ".inl", ".ipp", ".tpp", ".tcc", ".def")


class ListedPath(ProjectPath):
    """A source that is elsewhere than its entry in `src` says: in a foreign tree, or where a build generates it."""

    listed: str
    """What globs are compared with."""


def named(pattern: str, files: Iterable[str]) -> tuple[str, ...]:
    """Return the files that a path or a glob names."""
    normal = posixpath.normpath(pattern)
    matcher = Matcher.of(normal.split("/"))
    texts = ((file, file.listed if isinstance(file, ListedPath) else file) for file in files)
    return tuple(file for file, text in texts if text == normal or matcher.matches(text))


def without(files: Sequence[str], exclude: Iterable[str]) -> tuple[str, ...]:
    """Return the files that none of the entries of an `exclude` names."""
    out = {file for pattern in exclude for file in named(pattern, files)}
    return tuple(file for file in files if file not in out)


def problems(kernel: Kernel, path: KeyPath, table: SourceTable, files: Sequence[str]) -> Iterator[Problem]:
    """Yield the entries that name no source, and an `exclude` that leaves none; headers take no flags."""
    idle = [number for number, entry in enumerate(table.exclude) if not named(entry, files)]
    for number in idle:
        message = f"no source matches {quoted(table.exclude[number])}"
        yield kernel.source.problem("B041", message, path=(*path, "exclude", number), help=_remedy(files))
    if files and table.exclude and not without(files, table.exclude):
        message = "no source is left: 'exclude' names every file of 'src'"
        yield kernel.source.problem("B041", message, path=(*path, "exclude"), help="leave out the table, or narrow it")

    left = [file for file in without(files, table.exclude) if not file.endswith(HEADERS)]
    for entry in table.file_flags:
        if not named(entry, left):
            message = f"no source matches {quoted(entry)}"
            where = (*path, "file-flags", entry)
            yield kernel.source.problem("B041", message, path=where, key=True, help=_remedy(left))


def _remedy(files: Sequence[str]) -> str:
    if not files:
        return "'src' has no file of the kernel"
    return f"the sources are {', '.join(map(quoted, files[:3]))}{', …' if len(files) > 3 else ''}"  # noqa: PLR2004
