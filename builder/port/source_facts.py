"""Read facts from the files of a project, and list the tasks for a person."""

import configparser
import itertools
import os.path
import posixpath
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from builder.config.sources import SourceName, SourceUrl
from builder.config.values import InvalidValueError, ProjectPath
from builder.kernel import git
from builder.kernel.git import Checkout
from builder.port.tables import TableDraft
from builder.render import source_scan


@dataclass(frozen=True, slots=True)
class Todo:
    """A list that grows while a config is drafted, without duplicates."""

    items: dict[str, None] = field(default_factory=dict)

    def add(self, text: str, *, at: str = "") -> None:
        """Add a task; `at` is the `file:line` that causes it, if there is one."""
        self.items[f"{at}: {text}" if at else text] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a project, and the list of tasks."""

    root: Path
    at: str
    todo: Todo

    def say(self, text: str, *, near: str | None = None) -> None:
        """Add a task about the line, or about the nearest line of its file with the text `near`."""
        self.todo.add(text, at=self.at if near is None else self._line_of(near))

    def _line_of(self, text: str) -> str:
        file, _, number = self.at.rpartition(":")
        lines = read(self.root, file).splitlines()
        quoted = [index for index, line in enumerate(lines, start=1) if f'"{text}' in line or f"'{text}" in line]
        if not quoted:
            return self.at
        at = int(number) if number.isdigit() else 1
        return f"{file}:{min(quoted, key=lambda index: abs(index - at))}"


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PYBIND = re.compile(r"^[ \t]*(PYBIND11_MODULE|NB_MODULE)\b", re.MULTILINE)
_OWN_MODULE = re.compile(r"^[ \t]*PyMODINIT_FUNC\b", re.MULTILINE)
_LIBRARY = re.compile(
    r"^[ \t]*(?:STABLE_)?TORCH_LIBRARY(?:_EXPAND|_FRAGMENT)?\b|\bRegisterOperators\b",
    re.MULTILINE,
)
_RELATIVE = re.compile(
    r"^[ \t]*from[ \t]+(\.+)[ \t]*([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^(\n#][^\n#]*)", re.MULTILINE
)
_MOST = 20_000
_CODE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hip", ".hpp", ".inl", ".py", ".pyi")
_NO_DATA = frozenset((*_CODE, ".md", ".pyc", ".pyd", ".so"))
_WILD = set("[]*?")
_FEWEST = 4
"""The most files that are listed one by one; more files become a glob that matches no other."""


def is_path(path: str) -> bool:
    """Whether a config can contain a path: inside the project, and printable."""
    try:
        ProjectPath(path)
    except InvalidValueError:
        return False
    return True


def is_file(root: Path, path: str) -> bool:
    """Whether a project has a file; False for an invalid name."""
    return os.path.isfile(root / path)  # noqa: PTH113  pathlib raises for such a name


def is_folder(root: Path, path: str) -> bool:
    """Whether a project has a folder; False for an invalid name."""
    return os.path.isdir(root / path)  # noqa: PTH112  pathlib raises for such a name


def read(root: Path, path: str) -> str:
    """Return the text of a file in the project; empty if it is missing."""
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _code(root: Path, source: str) -> str:
    """Return the text of a source, blank where there are comments and where only Windows compiles it."""
    text = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), read(root, source))
    return source_scan.without_windows(text.encode()).decode()


def headers_of(root: Path, source: str) -> tuple[str, ...]:
    """Return the headers in the `#include` lines of a source."""
    return tuple(found[2] for found in _INCLUDE.finditer(_code(root, source)))


def makes_module(root: Path, source: str) -> bool:
    """Whether a source makes a Python module that is more than a way to load ops."""
    code = _code(root, source)
    return _PYBIND.search(code) is not None or (_OWN_MODULE.search(code) is not None and _LIBRARY.search(code) is None)


def registers_ops(root: Path, source: str) -> bool:
    """Whether a source registers ops."""
    return _LIBRARY.search(_code(root, source)) is not None


def headers(root: Path, sources: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Return the files that sources include, directly or indirectly, outside of the given folders."""
    listed = tuple(folders)
    waiting, seen = list(sources), set[str]()
    found: set[str] = set()
    while waiting and len(seen) < _MOST:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _included(root, path, listed):
            waiting.append(name)
            if not any(name.startswith(f"{folder}/") for folder in (*listed, "csrc")):
                found.add(name)
    return tuple(sorted(found))


def _included(root: Path, path: str, folders: tuple[str, ...]) -> Iterator[str]:
    for bracket, name in _INCLUDE.findall(_code(root, path)):
        beside = (posixpath.dirname(path),) if bracket == '"' else ()
        for folder in (*beside, "csrc", *folders):
            candidate = posixpath.normpath(posixpath.join(folder, name))
            if not candidate.startswith(("/", "..")) and is_file(root, candidate):
                yield candidate
                break


def with_globs(root: Path, paths: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a list of files with a glob for each folder and suffix that is nearly complete, and the exceptions."""
    entries: list[str] = []
    others: list[str] = []
    for (folder, glob), files in _by_glob(paths).items():
        there = {path.relative_to(root).as_posix() for path in (root / folder).glob(glob) if path.is_file()}
        hidden = any(PurePosixPath(path).name.startswith(".") for path in there)
        more = there - files
        few = len(files) >= _FEWEST and len(more) * _FEWEST <= len(files) and files <= there
        if few and not hidden and not _WILD & set("".join((folder, *more))):
            entries.append(posixpath.join(folder, glob))
            others += more
        else:
            entries += files
    return tuple(sorted(entries)), tuple(sorted(others))


def header_globs(paths: Iterable[str]) -> tuple[str, ...]:
    """Return a list of headers, with a glob for each folder and suffix that has several: too many do no harm."""
    found: list[str] = []
    for (folder, glob), files in _by_glob(paths).items():
        plain = len(files) == 1 or glob == "*" or _WILD & set(folder)
        found += files if plain else [posixpath.join(folder, glob)]
    return tuple(sorted(found))


def _by_glob(paths: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Group files by folder, and by the glob for their suffix."""
    groups: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        groups.setdefault((posixpath.dirname(path), f"*{PurePosixPath(path).suffix}"), set()).add(path)
    return groups


def imports_of(root: Path, module: str, packages: Iterable[str], *, top: str) -> Iterator[tuple[str, int]]:
    """Yield the lines of Python files, in package folders below `top`, that import a module."""
    package, _, last = module.rpartition(".")
    ways = [rf"import[ \t]+(?:[^#\n]*,[ \t]*)?{re.escape(module)}\b", rf"from[ \t]+{re.escape(module)}[ \t]+import\b"]
    if package:
        ways.append(rf"from[ \t]+{re.escape(package)}[ \t]+import[ \t]+[^#\n]*\b{re.escape(last)}\b")
    pattern = re.compile(rf"^[ \t]*(?:{'|'.join(ways)})", re.MULTILINE)
    for file, text in _texts(root, packages):
        found = [match.start() for match in pattern.finditer(text)]
        if package:
            found += _relative(text, posixpath.dirname(file), posixpath.join(top, *module.split(".")[1:]))
        yield from ((file, text.count("\n", 0, start) + 1) for start in sorted(found))


def _relative(text: str, folder: str, wanted: str) -> Iterator[int]:
    """Yield the lines where a file imports a path relative to its own package."""
    for found in _RELATIVE.finditer(text):
        dots, below, names = found.groups()
        place = posixpath.normpath(posixpath.join(folder, *[".."] * (len(dots) - 1), below.replace(".", "/")))
        imported = re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"#.*", "", names).strip("( "))
        if wanted in {place, *(posixpath.join(place, name) for name in imported)}:
            yield found.start()


def data_of(root: Path, package: str) -> tuple[str, ...]:
    """Return the files of a package that are neither Python, nor sources, nor left by a build or an editor."""
    files = (path for path in sorted((root / package).rglob("*")) if path.is_file() and not path.is_symlink())
    paths = [path.relative_to(root) for path in itertools.islice(files, _MOST)]
    return tuple(
        path.as_posix()
        for path in paths
        if path.suffix.lower() not in _NO_DATA and not any(part.startswith((".", "__pycache__")) for part in path.parts)
    )


def mentions_of(root: Path, module: str, packages: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of Python files, in package folders, that contain the name of a module as text."""
    return _lines_with(rf"""["']{re.escape(module)}["']""", root, packages)


def loads_of(root: Path, packages: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of Python files, in package folders, that compile with torch at import."""
    return _lines_with(r"^(?![ \t]*#).*\bcpp_extension[ \t]*(?:\.|import\b.*\b)load(?:_inline)?\b", root, packages)


def calls_of(root: Path, namespace: str, packages: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of Python files, in the folders of packages, that use a namespace of ops."""
    return _lines_with(rf"^(?![ \t]*#).*\b{re.escape(namespace)}\b", root, packages)


def library_loads_of(root: Path, packages: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of Python files, in the folders of packages, that load a library of ops."""
    return _lines_with(r"^(?![ \t]*#).*\bload_library[ \t]*\(", root, packages)


def _lines_with(pattern: str, root: Path, packages: Iterable[str]) -> Iterator[tuple[str, int]]:
    for file, text in _texts(root, packages):
        for found in re.finditer(pattern, text, re.MULTILINE):
            yield file, text.count("\n", 0, found.start()) + 1


def _texts(root: Path, packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the Python files in package folders, with their texts."""
    for folder in packages:
        for path in sorted((root / folder).glob("*.py")):
            file = path.relative_to(root).as_posix()
            yield file, read(root, file)


def license_of(text: str) -> str | None:
    """Return the SPDX name of a license text; None if it is not a common one."""
    folded = " ".join(text.lower().split())
    return next((name for name, words in _LICENSES.items() if all(word in folded for word in words)), None)


_LICENSES: Mapping[str, tuple[str, ...]] = {
    "Apache-2.0": ("apache license", "version 2.0"),
    "AGPL-3.0-only": ("gnu affero general public license", "version 3"),
    "LGPL-3.0-only": ("gnu lesser general public license", "version 3"),
    "GPL-3.0-only": ("gnu general public license", "version 3"),
    "MPL-2.0": ("mozilla public license", "version 2.0"),
    "BSD-3-Clause": ("redistribution and use in source and binary forms", "neither the name"),
    "BSD-2-Clause": ("redistribution and use in source and binary forms",),
    "MIT": ("permission is hereby granted, free of charge", 'the software is provided "as is"'),
}


def declared(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the folder and the URL of each submodule in `.gitmodules`, sorted."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string((root / ".gitmodules").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return
    found = {parser.get(name, "path", fallback=""): parser.get(name, "url", fallback="") for name in parser.sections()}
    yield from sorted((path, url) for path, url in found.items() if path)


def absent(root: Path) -> tuple[str, ...]:
    """Return the folders of submodules without files."""
    return tuple(path for path, _ in declared(root) if not ((root / path).is_dir() and any((root / path).iterdir())))


def sources(root: Path, included: Container[str], todo: Todo) -> Iterator[TableDraft]:
    """Yield the table of each foreign source that include folders use."""
    for path, url in declared(root):
        name = source_name(path)
        if name not in included:
            continue
        commit = _commit(root, path)
        try:
            address = str(SourceUrl(url))
        except InvalidValueError:
            todo.add(f"the submodule '{path}' has the address '{url}': write a whole URL", at=".gitmodules:1")
            address = f"https://example.com/{name}"
        if commit is None:
            todo.add(f"write the commit of the submodule '{path}' into sources.{name}.rev", at=".gitmodules:1")
        yield TableDraft(name=f"sources.{name}", keys={"git": address, "rev": commit or "0" * 40})


def source_name(path: str) -> str:
    """Return the name of the source tree for a submodule."""
    guess = re.sub(r"[^a-z0-9_-]+", "-", path.rpartition("/")[2].lower()).strip("-_")
    return guess if SourceName.matches(guess) else "foreign"


def _commit(root: Path, path: str) -> str | None:
    """Return the commit of a submodule that the repository records."""
    checkout = Checkout.around(root) if git.is_here() else None
    if checkout is None:
        return None
    listed = checkout.ask("ls-tree", "HEAD", "--", f"{checkout.inside}/{path}".lstrip("/"))
    found = re.match(r"160000 commit ([0-9a-f]{40})\t", listed.output)
    return found[1] if found else None
