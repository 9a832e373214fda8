"""The source set: the files of a kernel that go into its build."""

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from builder.config import Backend, Config, Framework
from builder.config.source_tables import SourceTable
from builder.config.sources import foreign_path
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.kernel.tree import HEADERS, NAMES, TooManyFilesError, Tree, files_named, files_without, is_glob
from builder.wording import nearest, quoted

_OUTPUTS = tuple(NAMES["outputs"])
_NEVER_SHIPPED = tuple(NAMES["never-shipped"])
_GLOBS_SINCE = 5
_LICENSE = re.compile(NAMES["license"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSet:
    """The files of a kernel that its build reads."""

    root: Path
    paths: tuple[str, ...]
    """POSIX paths, relative to the root, sorted."""
    shipped: frozenset[str] = frozenset()
    """The files of the Python package that go into the wheel."""

    def read(self, path: str) -> bytes:
        """Return the content of a file of the set."""
        # Strings and no `Path`: twice as fast for thousands of small files.
        with open(f"{self.root}/{path}", "rb", buffering=0) as stream:  # noqa: PTH123
            return stream.read()


def package_directory(config: Config) -> str:
    """Return the directory of the Python package in a kernel, relative to the root."""
    named = config.wheel.package
    return rendered_package(config) if named is None else posixpath.normpath(named)


def rendered_package(config: Config) -> str:
    """Return the directory of the Python package in a rendered project; it may differ in the kernel."""
    named = config.framework if config.framework in (Framework.TVM_FFI, Framework.CTYPES) else Framework.TORCH
    return f"{named}-ext/{config.general.name.module}"


def readme(config: Config) -> str | None:
    """Return the file with the wheel's description, relative to the root."""
    named = config.wheel.readme
    return None if named is None else posixpath.normpath(named)


def license_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the license files among the paths, sorted."""
    return tuple(sorted(path for path in paths if _LICENSE.fullmatch(path)))


def source_set(kernel: Kernel, *, backend: Backend | None = None, tree: Tree | None = None) -> SourceSet:
    """Find the files of a kernel, or of its build for one backend.

    Pass `tree` to walk the folder once for several calls.

    Raises:
        ConfigError: a file or the Python package is missing or outside the project; all such problems are reported.
    """
    finder = _Finder(kernel, tree or Tree.of(kernel.root))
    found: set[str] = set()
    for path, table in kernel.config.tables(backend):
        found.update(finder.of_table(path, table))
    found.update(finder.of_steps())
    found.update(finder.headers(backend))
    shipped = frozenset(finder.package()) | frozenset(finder.data())
    found.update(shipped, license_files(finder.tree.plain_files("")), finder.readme())
    if finder.problems:
        has = kernel.source.has
        # An upgrade adds components to old configs; their problems repeat those of a component in the text.
        known = {problem.message for problem in finder.problems if has(problem.key)}
        raise kernel.source.error(*(each for each in finder.problems if has(each.key) or each.message not in known))
    return SourceSet(root=finder.tree.root, paths=tuple(sorted(found)), shipped=shipped)


def expand(
    kernel: Kernel, entries: Sequence[str], *, exclude: Sequence[str] = (), tree: Tree | None = None
) -> tuple[str, ...]:
    """Expand the entries of a `src` to files: each file once, in the order of the entries.

    Foreign and generated files are left out: they are not in the kernel's tree.

    Raises:
        ConfigError: an entry names no file, or a file outside the project; all such entries of the kernel are reported.
    """
    finder = _Finder(kernel, tree or Tree.of(kernel.root))
    found = tuple(dict.fromkeys(finder.entries((), entries)))
    if finder.problems:
        source_set(kernel, tree=finder.tree)  # raises the same problems, each at its key
        raise kernel.source.error(*finder.problems)
    return files_without(found, exclude)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Searches for the files of a kernel, and collects all problems."""

    kernel: Kernel
    tree: Tree
    problems: list[Problem] = field(default_factory=list)

    def refuse(
        self,
        code: str,
        message: str,
        place: KeyPath,
        *,
        key: bool = False,
        help: str | None = None,
    ) -> None:
        self.problems.append(self.kernel.source.problem(code, message, path=place, key=key, help=help))

    def accepts(self, place: KeyPath, file: str) -> bool:
        """Whether a build can read a file; if not, note the problem."""
        if not file.isprintable():  # a glob finds names that no config can contain
            message = f"the file {quoted(file)} has a name with characters that CMake and JSON cannot hold"
            self.refuse("B030", message, place, help="rename the file")
            return False
        if self.tree.has_plain(file):
            return True
        path = self.tree.path(file)
        try:
            inside, is_file, is_directory = self.tree.contains(file), path.is_file(), path.is_dir()
        except OSError as error:  # the name is too long, or links form a loop
            self.refuse("B030", f"cannot read {quoted(file)}: {error.strerror}", place)
            return False
        if not inside:
            message = f"{quoted(file)} leaves the project through a symbolic link"
            self.refuse("B031", message, place, help="copy the file into the project")
        elif is_directory:
            remedy = f"list its files, or write '{file[:80]}/**/*'"
            self.refuse("B030", f"{quoted(file)} is a directory", place, help=remedy)
        elif not is_file and os.path.lexists(path) and not path.is_symlink():
            self.refuse("B030", f"{quoted(file)} is not a regular file", place)
        elif not is_file:
            self.refuse("B030", f"the file {quoted(file)} does not exist", place, help=self._similar(file))
        return inside and is_file

    def _similar(self, file: str) -> str | None:
        directory, name = posixpath.split(file)
        try:
            siblings = sorted(path.name for path in self.tree.path(directory).iterdir())
        except OSError:
            return f"there is no directory {quoted(directory)} either"
        guess = nearest(name, siblings)
        return None if guess is None else f"did you mean {quoted(posixpath.join(directory, guess))}?"

    def too_many(self, place: KeyPath, directory: str) -> None:
        remedy = "look for symbolic links that lead back, or name a smaller directory"
        self.refuse("B035", f"too many files under {quoted(directory)}", place, help=remedy)

    def under(self, place: KeyPath, directory: str, *, named: str, wanted: Callable[[str], bool]) -> Iterator[str]:
        """Yield the wanted files below a directory, which the config spells `named`."""
        try:
            files = self.tree.walk(directory)
        except TooManyFilesError:
            self.too_many(place, named)
        else:
            yield from (file for file in files if wanted(file) and self.accepts(place, file))

    def entries(self, path: KeyPath, entries: Sequence[str]) -> Iterator[str]:
        for number, entry in enumerate(entries):
            if not self.kernel.config.is_elsewhere(entry):
                yield from self.entry((*path, number) if path else (), entry)

    def entry(self, place: KeyPath, entry: str) -> Iterator[str]:
        relative = posixpath.normpath(entry)
        files: tuple[str, ...] = (relative,)
        if is_glob(relative) and not self.tree.is_file(relative):
            if self.kernel.schema < _GLOBS_SINCE:
                message = f"{quoted(entry)} is a glob, which needs edition {_GLOBS_SINCE}, and no file has that name"
                self.refuse("B034", message, place, help="run 'builder update'")
                return
            try:
                files = self.tree.glob(relative)
            except TooManyFilesError:
                self.too_many(place, entry)
                return
            if not files:
                remedy = "'*' stays within a directory, '**/' crosses directories, and hidden files are left out"
                self.refuse("B034", f"no file matches {quoted(entry)}", place, help=remedy)
        yield from (file for file in files if self.accepts(place, file))

    def of_table(self, path: KeyPath, table: SourceTable) -> tuple[str, ...]:
        """Return the sources of a table; note entries without files, and an `exclude` that leaves no source."""
        before = len(self.problems)
        found = tuple(self.entries((*path, "src"), table.src))
        if len(self.problems) > before:
            return files_without(found, table.exclude)
        # The paths as globs see them; in a foreign tree, the path after its name.
        elsewhere = (entry.rpartition(":") for entry in table.src if self.kernel.config.is_elsewhere(entry))
        files = (*found, *(f"{name}{colon}{posixpath.normpath(path)}" for name, colon, path in elsewhere))
        for number, entry in enumerate(table.exclude):
            if not files_named(entry, files):
                message = f"no source matches {quoted(entry)}"
                self.refuse("B041", message, (*path, "exclude", number), help=_sources_are(files))
        left = files_without(files, table.exclude)
        if files and table.exclude and not left:
            message = "no source is left: 'exclude' names every file of 'src'"
            self.refuse("B041", message, (*path, "exclude"), help="leave out the table, or narrow it")
        compiled = [file for file in left if not file.endswith(HEADERS)]  # headers do not get flags
        for entry in table.file_flags:
            if not files_named(entry, compiled):
                message, place = f"no source matches {quoted(entry)}", (*path, "file-flags", entry)
                self.refuse("B041", message, place, key=True, help=_sources_are(compiled))
        return files_without(found, table.exclude)

    def of_steps(self) -> Iterator[str]:
        """Yield the scripts and inputs of steps; refuse outputs that exist in the kernel."""
        for number, step in enumerate(self.kernel.config.generate):
            path: KeyPath = ("generate", number)
            script = posixpath.normpath(step.script)
            if self.accepts((*path, "script"), script):
                yield script
            yield from self.entries((*path, "inputs"), step.inputs)
            for index, entry in enumerate(step.outputs):
                if os.path.lexists(self.tree.path(posixpath.normpath(entry))):
                    message = f"{quoted(entry)} is an output of a step, and there is a file of that name"
                    remedy = "remove the file, or name another output"
                    self.refuse("B058", message, (*path, "outputs", index), help=remedy)

    def headers(self, backend: Backend | None) -> Iterator[str]:
        """Yield the headers in the include directories of a backend, or of all."""
        config = self.kernel.config
        folders: list[tuple[KeyPath, str]] = [] if config.framework is Framework.TORCH_NOARCH else [((), "csrc")]
        # Problems of components are reported first.
        for path, table in sorted(config.tables(backend), key=lambda found: found[0][0] != "kernel"):
            for number, entry in enumerate(table.include):
                if foreign_path(entry, config.sources) is None:
                    folders.append(((*path, "include", number), entry))
        for place, directory in folders:
            relative = posixpath.normpath(directory)
            relative = "" if relative == "." else relative
            if self.tree.contains(relative or "."):
                built = () if relative else tuple(f"{name}/" for name in _OUTPUTS)
                yield from self.under(place, relative, named=directory, wanted=partial(_is_header, built=built))
            else:
                self.refuse("B031", f"{quoted(directory)} leaves the project through a symbolic link", place)

    def package(self) -> Iterator[str]:
        """Yield the files of the Python package that have the wheel's extensions."""
        config, tree = self.kernel.config, self.tree
        directory, usual = package_directory(config), rendered_package(config)
        has_module = tree.is_file(f"{directory}/__init__.py")
        inner = f"{directory}/{config.general.name.module if has_module else posixpath.basename(directory)}"
        place: KeyPath = ("general", "name") if directory == usual else ("wheel", "package")
        named = config.wheel.package
        if directory == "." or ".." in (named or "").split("/"):
            message = f"{quoted(named or directory)} is no folder below that of the config"
            self.refuse("B032", message, place, help="write it as in 'python/relu'")
        elif directory != usual and tree.is_directory(usual):
            message = f"'{usual}' would be the Python package if {quoted(directory)} were not: a wheel has one"
            self.refuse("B056", message, place, help=f"move what is in '{usual}'")
        elif not tree.contains(directory):
            message = f"the Python package {quoted(directory)} leaves the project through a symbolic link"
            self.refuse("B031", message, place, help="copy the package into the project")
        elif not has_module and not tree.is_file(f"{inner}/__init__.py"):
            self._no_package(directory, place)
        elif not has_module or tree.is_directory(inner):
            message = f"the Python package is nested in itself: '{inner}'"
            self.refuse("B033", message, place, help=f"move the files of '{inner}' to '{directory}'")
        else:
            extensions = tuple(f".{extension}" for extension in config.pyext)
            yield from self.under(
                place, directory, named=directory, wanted=lambda file: file.endswith(extensions) and _may_ship(file)
            )

    def _no_package(self, directory: str, place: KeyPath) -> None:
        parent, module = posixpath.split(directory)
        packages = [path.parent.name for path in sorted(self.tree.path(parent).glob("*/__init__.py"))]
        remedy = f"create '{directory}/__init__.py'"
        guess = nearest(module, packages)
        if place[0] == "wheel":
            better = None if guess is None else f"did you mean '{posixpath.join(parent, guess)}'?"
            remedy = better or f"{remedy}, or name another folder"
        elif packages:
            remedy = f"rename '{parent}/{packages[0]}' to '{directory}', or change the name of the kernel"
        self.refuse("B032", f"the Python package '{directory}/__init__.py' does not exist", place, help=remedy)

    def data(self) -> Iterator[str]:
        """Yield the files of `wheel.data`; refuse those outside the Python package, and files that builds write."""
        config = self.kernel.config
        package = package_directory(config)
        extensions = (f"_ops_{name}.py" for name in config.extension)
        generated = (f"{config.framework.generated}.py", *extensions, "metadata.json")
        for number, entry in enumerate(config.wheel.data):
            place: KeyPath = ("wheel", "data", number)
            for file in self.entry(place, entry):
                reason = None
                if not file.startswith(f"{package}/"):
                    reason = f"it is not in the Python package {quoted(package)}"
                elif not _may_ship(file):
                    reason = "libraries and bytecode come from the build"
                elif file.removeprefix(f"{package}/") in generated:
                    reason = "the build writes a file of this name"
                if reason is None:
                    yield file
                else:
                    message = f"the wheel cannot have {quoted(file)}: {reason}"
                    self.refuse("B055", message, place, help="leave it out")

    def readme(self) -> Iterator[str]:
        path, place = readme(self.kernel.config), ("wheel", "readme")
        if path is None or not self.accepts(place, path):
            return
        try:
            self.tree.path(path).read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            self.refuse(
                "B030", f"the file {quoted(path)} is not UTF-8", place, help="save the file in the encoding UTF-8"
            )
        else:
            yield path


def _is_header(file: str, *, built: tuple[str, ...]) -> bool:
    return file.endswith(HEADERS) and not file.startswith(built)


def _may_ship(file: str) -> bool:
    return not file.endswith(_NEVER_SHIPPED) and "/__pycache__/" not in file


def _sources_are(files: Sequence[str]) -> str:
    if not files:
        return "'src' has no file of the kernel"
    return f"the sources are {', '.join(map(quoted, files[:3]))}{', …' if len(files) > 3 else ''}"  # noqa: PLR2004
