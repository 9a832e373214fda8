"""Walk the files of a user's directory in order, following symbolic links, but never out of it or for ever."""

import fnmatch
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import resources, toml
from builder.config.values import ProjectPath

MOST_FILES = 200_000
_MOST_WAYS = 16
"""The most paths by which a walk enters one directory through links; each level of links would double them."""
_WILDCARD = re.compile(r"[*?[]")
NAMES: Mapping[str, Any] = toml.loads((resources.DATA / "source-files.toml").read_text(encoding="utf-8"))
"""Kinds of files in a kernel, by name; the data file explains each key."""
HEADERS = tuple(NAMES["headers"])


class TooManyFilesError(Exception):
    """A directory has more files than any kernel, usually because links multiply them."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory, with cached answers about it."""

    root: Path
    real_root: str
    _inside: dict[str, bool] = field(default_factory=dict)
    """Whether a path stays inside the tree when links are followed."""
    _walks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _globs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _plain: set[str] = field(default_factory=set)
    """Regular files that a walk has found."""
    entered: set[str] = field(default_factory=set)
    """Directories that walks have entered, even if they found nothing."""

    @classmethod
    def of(cls, root: Path) -> "Tree":
        """Return the tree of a directory."""
        absolute = Path(os.path.abspath(root))  # noqa: PTH100  resolve() would follow links
        return cls(root=absolute, real_root=os.path.realpath(absolute))

    def path(self, relative: str) -> Path:
        """Return the absolute path of `relative`."""
        return self.root / relative

    def is_file(self, relative: str) -> bool:
        """Whether `relative` is a file, following links; False for a name that no file system allows."""
        return os.path.isfile(f"{self.root}/{relative}")  # noqa: PTH113  strings: this runs for many files

    def is_directory(self, relative: str) -> bool:
        """Whether `relative` is a directory, following links."""
        return os.path.isdir(f"{self.root}/{relative}")  # noqa: PTH112

    def contains(self, relative: str) -> bool:
        """Whether `relative` stays inside the tree when links are followed."""
        if relative not in self._inside:
            self._inside[relative] = self._is_inside(os.path.realpath(self.root / relative))
        return self._inside[relative]

    def _is_inside(self, real: str) -> bool:
        return real == self.real_root or real.startswith(self.real_root.rstrip(os.sep) + os.sep)

    def has_plain(self, relative: str) -> bool:
        """Whether `relative` is a regular file and not a link: the common case, which needs one look."""
        if relative in self._plain:
            return True
        path = os.path.join(self.root, relative)  # noqa: PTH118  strings: this runs once for each file
        try:
            return stat.S_ISREG(os.lstat(path).st_mode) and self.contains(os.path.dirname(relative))  # noqa: PTH120
        except (OSError, ValueError):
            return False

    def plain_files(self, folder: str) -> tuple[str, ...]:
        """Return the sorted names of the regular files directly in `folder`, without hidden files and links."""
        if folder not in self._folders:
            self._folders[folder] = tuple(name for name, kind in self._entries(folder) if kind == "plain")
        return self._folders[folder]

    def walk(self, start: str) -> tuple[str, ...]:
        """Return the files under `start` that are not hidden, relative to the root.

        Raises:
            TooManyFilesError: there are more files than any kernel has.
        """
        if start not in self._walks:
            self._walks[start] = tuple(self._walk(start))
        return self._walks[start]

    def _walk(self, start: str) -> Iterator[str]:
        budget = MOST_FILES
        entered: dict[str, int] = {}
        pending = [(start, frozenset[str]())]
        while pending:
            relative, ancestors = pending.pop()
            real = os.path.realpath(self.root / relative)
            if real in ancestors or not self._is_inside(real):
                continue
            self.entered.add(relative)
            entered[real] = entered.get(real, 0) + 1
            if entered[real] > _MOST_WAYS:
                raise TooManyFilesError(start)
            directories = []
            for name, kind in self._entries(relative):
                budget -= 1
                if budget < 0:
                    raise TooManyFilesError(start)
                path = f"{relative}/{name}" if relative else name
                if kind == "folder":
                    directories.append((path, ancestors | {real}))
                    continue
                if kind == "plain":
                    self._plain.add(path)
                yield path
            pending.extend(reversed(directories))

    def _entries(self, relative: str) -> list[tuple[str, str]]:
        """Return the sorted names and kinds of a directory's entries: `plain`, `folder`, or another."""
        try:
            with os.scandir(self.root / relative) as entries:
                return sorted((entry.name, _kind(entry)) for entry in entries if not entry.name.startswith("."))
        except OSError:
            return []

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the files that match `pattern`, sorted; `**` stands for any number of directories."""
        if pattern not in self._globs:
            segments = tuple(pattern.split("/"))
            literal = 0
            while literal < len(segments) - 1 and not is_glob(segments[literal]):
                literal += 1
            start = "/".join(segments[:literal])
            matcher = Matcher.of(segments)
            self._globs[pattern] = tuple(sorted(path for path in self.walk(start) if matcher.matches(path)))
        return self._globs[pattern]


def is_glob(path: str) -> bool:
    """Whether a path has a wildcard."""
    return _WILDCARD.search(path) is not None


def _kind(entry: "os.DirEntry[str]") -> str:
    try:
        if entry.is_file(follow_symlinks=False):
            return "plain"
        return "folder" if entry.is_dir() else "other"
    except OSError:  # links form a loop
        return "other"


@dataclass(frozen=True, slots=True)
class Matcher:
    """A pattern that is matched segment by segment with all reached positions: linear time for any number of `**`."""

    patterns: tuple[re.Pattern[str] | None, ...]
    """The pattern of each segment; None stands for `**`."""
    _after: dict[str, frozenset[int]]
    """Folder -> the positions reached after its path."""

    @classmethod
    def of(cls, segments: Sequence[str]) -> "Matcher":
        """Return the matcher of a pattern, given its segments."""
        patterns = tuple(None if text == "**" else re.compile(fnmatch.translate(text)) for text in segments)
        return cls(patterns, {"": _past_stars(patterns, {0})})

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path."""
        folder, _, name = path.rpartition("/")
        return len(self.patterns) in self._step(self._reached(folder), name)

    def _reached(self, folder: str) -> frozenset[int]:
        if folder not in self._after:
            parent, _, name = folder.rpartition("/")
            self._after[folder] = self._step(self._reached(parent), name)
        return self._after[folder]

    def _step(self, reached: frozenset[int], name: str) -> frozenset[int]:
        following = set()
        for at in reached - {len(self.patterns)}:
            pattern = self.patterns[at]
            if pattern is None:
                following.add(at)
            elif pattern.match(name):
                following.add(at + 1)
        return _past_stars(self.patterns, following)


def _past_stars(patterns: Sequence[re.Pattern[str] | None], reached: set[int]) -> frozenset[int]:
    for at, pattern in enumerate(patterns):
        if at in reached and pattern is None:
            reached.add(at + 1)
    return frozenset(reached)


class ListedPath(ProjectPath):
    """A source that is not at the path of its `src` entry: it is in a foreign tree, or a build generates it."""

    listed: str
    """The path that globs are compared with."""


def files_named(pattern: str, files: Iterable[str]) -> tuple[str, ...]:
    """Return the files that match a path or a glob."""
    normal = posixpath.normpath(pattern)
    matcher = Matcher.of(normal.split("/"))
    texts = ((file, file.listed if isinstance(file, ListedPath) else file) for file in files)
    return tuple(file for file, text in texts if text == normal or matcher.matches(text))


def files_without(files: Sequence[str], exclude: Iterable[str]) -> tuple[str, ...]:
    """Return the files that match no entry of an `exclude`."""
    out = {file for pattern in exclude for file in files_named(pattern, files)}
    return tuple(file for file in files if file not in out)
