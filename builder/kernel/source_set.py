"""The source set: the files of a kernel that go into its build."""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.config import Backend, Config, Framework
from builder.config.source_tables import SourceTable
from builder.config.sources import foreign_path
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.kernel.tree import HEADERS, TooManyFilesError, Tree, files_named, files_without, is_glob
from builder.wording import nearest, quoted

_OUTPUTS = ("build", "dist")
"""Directories of the root that hold what was built."""
_NEVER_SHIPPED = (".pyc", ".pyo", ".so", ".dylib", ".pyd")
_GLOBS_SINCE = 5
_NAME = re.compile(r"(LICEN[CS]E|License|COPYING|COPYRIGHT|NOTICE|AUTHORS)([._-][A-Za-z0-9._-]*)?")
"""Also in `builder/nix/sources.nix`; a test compares the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSet:
    """The files of a kernel that its build reads."""

    root: Path
    paths: tuple[str, ...]
    """POSIX paths, relative to the root, sorted."""
    shipped: frozenset[str] = frozenset()
    """Those of the Python package that the wheel has."""

    def read(self, path: str) -> bytes:
        """Return the content of a file of the set."""
        # Strings and no buffer: half of what `Path.read_bytes` costs, for thousands of small files.
        with open(f"{self.root}/{path}", "rb", buffering=0) as stream:  # noqa: PTH123
            return stream.read()


def package_directory(config: Config) -> str:
    """Return the directory of the Python package in a kernel, relative to the root."""
    named = None if config.wheel is None else config.wheel.package
    return rendered_package(config) if named is None else posixpath.normpath(named)


def rendered_package(config: Config) -> str:
    """Return the directory of the Python package in a rendered project, whatever it is in the kernel."""
    named = config.framework if config.framework in (Framework.TVM_FFI, Framework.CTYPES) else Framework.TORCH
    return f"{named}-ext/{config.general.name.module}"


def readme(config: Config) -> str | None:
    """Return the file that describes the wheel, relative to the root."""
    named = None if config.wheel is None else config.wheel.readme
    return None if named is None else posixpath.normpath(named)


def source_set(kernel: Kernel, *, backend: Backend | None = None, tree: Tree | None = None) -> SourceSet:
    """Find the files of a kernel, or those that its build for one backend reads.

    Pass `tree` to walk the folder once for several calls.

    Raises:
        ConfigError: a file is missing or outside the project, or the Python package is; all are reported.
    """
    tree = tree or Tree.of(kernel.root)
    problems: list[Problem] = []
    found: set[str] = set()
    for path, table in kernel.config.tables(backend):
        found.update(_sources(kernel, tree, path, table, problems))
    found.update(_of_steps(kernel, tree, problems))
    for path, directory in _include_directories(kernel.config, backend):
        found.update(_headers(kernel, tree, path, directory, problems))
    shipped = frozenset(_package(kernel, tree, problems)) | frozenset(_data(kernel, tree, problems))
    found.update(shipped, find_license_files(tree), _readme(kernel, tree, problems))
    if problems:
        raise kernel.source.error(*_without_repeats(kernel, problems))
    return SourceSet(root=tree.root, paths=tuple(sorted(found)), shipped=shipped)


def expand(
    kernel: Kernel, entries: Sequence[str], *, exclude: Sequence[str] = (), tree: Tree | None = None
) -> tuple[str, ...]:
    """Return the files that the entries of a `src` name: globs expanded, each file once, in the order of the entries.

    Those of foreign sources, and those that a build generates, are left out: they are not in the kernel's tree.

    Raises:
        ConfigError: an entry names no file, or one outside the project; every such entry of the kernel is reported.
    """
    tree = tree or Tree.of(kernel.root)
    problems: list[Problem] = []
    found = tuple(dict.fromkeys(_expand(kernel, tree, (), entries, problems)))
    if problems:
        source_set(kernel, tree=tree)  # the same problems, each at its key
        raise kernel.source.error(*problems)
    return files_without(found, exclude)


def _sources(kernel: Kernel, tree: Tree, path: KeyPath, table: SourceTable, problems: list[Problem]) -> tuple[str, ...]:
    before = len(problems)
    files = tuple(_expand(kernel, tree, (*path, "src"), table.src, problems))
    if len(problems) == before:
        elsewhere = tuple(_normal(entry) for entry in table.src if kernel.config.is_elsewhere(entry))
        problems.extend(_glob_problems(kernel, path, table, (*files, *elsewhere)))
    return files_without(files, table.exclude)


def _of_steps(kernel: Kernel, tree: Tree, problems: list[Problem]) -> Iterator[str]:
    """Yield the scripts and the inputs of steps that generate sources; refuse outputs that are files of the kernel."""
    for number, step in enumerate(kernel.config.generate):
        path: KeyPath = ("generate", number)
        script = posixpath.normpath(step.script)
        problem = _refusal(kernel, tree, (*path, "script"), script)
        problems.extend(filter(None, [problem]))
        yield from () if problem is not None else (script,)
        yield from _expand(kernel, tree, (*path, "inputs"), step.inputs, problems)
        for index, entry in enumerate(step.outputs):
            if os.path.lexists(tree.path(posixpath.normpath(entry))):
                message = f"{quoted(entry)} is an output of a step, and there is a file of that name"
                place, remedy = (*path, "outputs", index), "remove the file, or name another output"
                problems.append(kernel.source.problem("B058", message, path=place, help=remedy))


def _normal(entry: str) -> str:
    """Return an entry as globs see it; the path in a foreign tree is behind its name."""
    name, colon, path = entry.rpartition(":")
    return f"{name}{colon}{posixpath.normpath(path)}"


def _include_directories(config: Config, backend: Backend | None) -> Iterator[tuple[KeyPath, str]]:
    if config.framework is not Framework.TORCH_NOARCH:
        yield (), "csrc"
    # Problems of components are told first.
    tables = sorted(config.tables(backend), key=lambda found: found[0][0] != "kernel")
    for path, table in tables:
        for number, directory in enumerate(table.include):
            if foreign_path(directory, config.sources) is None:
                yield (*path, "include", number), directory


def _expand(
    kernel: Kernel, tree: Tree, path: KeyPath, entries: Sequence[str], problems: list[Problem]
) -> Iterator[str]:
    for number, entry in enumerate(entries):
        if not kernel.config.is_elsewhere(entry):
            yield from _expand_entry(kernel, tree, (*path, number) if path else (), entry, problems)


def _expand_entry(kernel: Kernel, tree: Tree, place: KeyPath, entry: str, problems: list[Problem]) -> Iterator[str]:
    relative = posixpath.normpath(entry)
    if not is_glob(relative) or tree.is_file(relative):
        files: tuple[str, ...] = (relative,)
    elif kernel.schema < _GLOBS_SINCE:
        message = f"{quoted(entry)} is a glob, which needs edition {_GLOBS_SINCE}, and no file has that name"
        problems.append(kernel.source.problem("B034", message, path=place, help="run 'builder update'"))
        return
    else:
        files = _glob(kernel, tree, place, entry, problems)
    for file in files:
        problem = _refusal(kernel, tree, place, file)
        if problem is None:
            yield file
        else:
            problems.append(problem)


def _glob(kernel: Kernel, tree: Tree, place: KeyPath, entry: str, problems: list[Problem]) -> tuple[str, ...]:
    try:
        files = tree.glob(posixpath.normpath(entry))
    except TooManyFilesError:
        problems.append(_too_many(kernel, place, entry))
        return ()
    if not files:
        message = f"no file matches {quoted(entry)}"
        remedy = "'*' stays within a directory, '**/' crosses directories, and hidden files are left out"
        problems.append(kernel.source.problem("B034", message, path=place, help=remedy))
    return files


def _refusal(kernel: Kernel, tree: Tree, place: KeyPath, file: str) -> Problem | None:
    if not file.isprintable():  # a glob finds what no config can list
        message = f"the file {quoted(file)} has a name with characters that CMake and JSON cannot hold"
        return kernel.source.problem("B030", message, path=place, help="rename the file")
    return None if tree.has_plain(file) else _linked_or_none(kernel, tree, place, file)


def _linked_or_none(kernel: Kernel, tree: Tree, place: KeyPath, file: str) -> Problem | None:
    path = tree.path(file)
    try:
        inside, is_file, is_directory = tree.contains(file), path.is_file(), path.is_dir()
    except OSError as error:  # a name that is too long, a loop of links
        message = f"cannot read {quoted(file)}: {error.strerror}"
        return kernel.source.problem("B030", message, path=place)
    if not inside:
        message = f"{quoted(file)} leaves the project through a symbolic link"
        return kernel.source.problem("B031", message, path=place, help="copy the file into the project")
    if is_file:
        return None
    if is_directory:
        message = f"{quoted(file)} is a directory"
        return kernel.source.problem("B030", message, path=place, help=f"list its files, or write '{file[:80]}/**/*'")
    if os.path.lexists(path) and not path.is_symlink():
        return kernel.source.problem("B030", f"{quoted(file)} is not a regular file", path=place)
    return kernel.source.problem(
        "B030", f"the file {quoted(file)} does not exist", path=place, help=_similar(tree, file)
    )


def _similar(tree: Tree, file: str) -> str | None:
    directory, name = posixpath.split(file)
    try:
        siblings = sorted(path.name for path in tree.path(directory).iterdir())
    except OSError:
        return f"there is no directory {quoted(directory)} either"
    guess = nearest(name, siblings)
    return None if guess is None else f"did you mean {quoted(posixpath.join(directory, guess))}?"


def _headers(kernel: Kernel, tree: Tree, place: KeyPath, directory: str, problems: list[Problem]) -> Iterator[str]:
    relative = posixpath.normpath(directory)
    relative = "" if relative == "." else relative
    if not tree.contains(relative or "."):
        message = f"{quoted(directory)} leaves the project through a symbolic link"
        problems.append(kernel.source.problem("B031", message, path=place))
        return
    try:
        for file in tree.walk(relative):
            if not file.endswith(HEADERS) or (not relative and file.startswith(tuple(f"{name}/" for name in _OUTPUTS))):
                continue
            problem = _refusal(kernel, tree, place, file)
            if problem is None:
                yield file
            else:
                problems.append(problem)
    except TooManyFilesError:
        problems.append(_too_many(kernel, place, directory))


def _package(kernel: Kernel, tree: Tree, problems: list[Problem]) -> Iterator[str]:
    directory = package_directory(kernel.config)
    module = kernel.config.general.name.module
    usual = rendered_package(kernel.config)
    place: KeyPath = ("general", "name") if directory == usual else ("wheel", "package")
    named = None if kernel.config.wheel is None else kernel.config.wheel.package
    if directory == "." or ".." in (named or "").split("/"):
        message = f"{quoted(named or directory)} is no folder below that of the config"
        problems.append(kernel.source.problem("B032", message, path=place, help="write it as in 'python/relu'"))
        return
    if directory != usual and tree.is_directory(usual):
        message = f"'{usual}' would be the Python package if {quoted(directory)} were not: a wheel has one"
        problems.append(kernel.source.problem("B056", message, path=place, help=f"move what is in '{usual}'"))
        return
    if not tree.contains(directory):
        message = f"the Python package {quoted(directory)} leaves the project through a symbolic link"
        problems.append(kernel.source.problem("B031", message, path=place, help="copy the package into the project"))
        return
    if not tree.is_file(f"{directory}/__init__.py"):
        problems.append(_no_package(kernel, tree, directory, place))
        return
    if tree.is_directory(f"{directory}/{module}"):
        message = f"the Python package is nested in itself: '{directory}/{module}'"
        remedy = f"move the files of '{directory}/{module}' to '{directory}'"
        problems.append(kernel.source.problem("B033", message, path=place, help=remedy))
        return
    extensions = tuple(f".{extension}" for extension in kernel.config.pyext)
    try:
        for file in tree.walk(directory):
            if not file.endswith(extensions) or file.endswith(_NEVER_SHIPPED) or "/__pycache__/" in file:
                continue
            problem = _refusal(kernel, tree, place, file)
            if problem is None:
                yield file
            else:
                problems.append(problem)
    except TooManyFilesError:
        problems.append(_too_many(kernel, place, directory))


def _data(kernel: Kernel, tree: Tree, problems: list[Problem]) -> Iterator[str]:
    wheel = kernel.config.wheel
    package = f"{package_directory(kernel.config)}/"
    extensions = (f"_ops_{name}.py" for name in kernel.config.extension)
    generated = (f"{kernel.config.framework.generated}.py", *extensions, "metadata.json")
    for number, entry in enumerate(() if wheel is None else wheel.data):
        place: KeyPath = ("wheel", "data", number)
        for file in _expand_entry(kernel, tree, place, entry, problems):
            reason = _why_no_data(file, package, generated=generated)
            if reason is None:
                yield file
            else:
                message = f"the wheel cannot have {quoted(file)}: {reason}"
                problems.append(kernel.source.problem("B055", message, path=place, help="leave it out"))


def _readme(kernel: Kernel, tree: Tree, problems: list[Problem]) -> Iterator[str]:
    path, place = readme(kernel.config), ("wheel", "readme")
    if path is None:
        return
    problem = _refusal(kernel, tree, place, path)
    if problem is None and not _is_text(tree.path(path)):
        message = f"the file {quoted(path)} is not UTF-8"
        problem = kernel.source.problem("B030", message, path=place, help="save the file in the encoding UTF-8")
    if problem is None:
        yield path
    else:
        problems.append(problem)


def _is_text(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _why_no_data(file: str, package: str, *, generated: tuple[str, ...]) -> str | None:
    """Return why a file is no data of a package, into which every build writes `generated`."""
    if not file.startswith(package):
        return f"it is not in the Python package {quoted(package.rstrip('/'))}"
    if file.endswith(_NEVER_SHIPPED) or "/__pycache__/" in file:
        return "libraries and bytecode come from the build"
    return "the build writes a file of this name" if file.removeprefix(package) in generated else None


def _no_package(kernel: Kernel, tree: Tree, directory: str, place: KeyPath) -> Problem:
    parent, module = posixpath.split(directory)
    nested = tree.is_file(f"{directory}/{module}/__init__.py")
    if nested:
        message = f"the Python package is nested in itself: '{directory}/{module}'"
        remedy = f"move the files of '{directory}/{module}' to '{directory}'"
        return kernel.source.problem("B033", message, path=place, help=remedy)
    message = f"the Python package '{directory}/__init__.py' does not exist"
    packages = [path.parent.name for path in sorted(tree.path(parent).glob("*/__init__.py"))]
    remedy = f"create '{directory}/__init__.py'"
    guess = nearest(module, packages)
    if place[0] == "wheel":
        remedy = f"did you mean '{posixpath.join(parent, guess)}'?" if guess else f"{remedy}, or name another folder"
    elif packages:
        remedy = f"rename '{parent}/{packages[0]}' to '{directory}', or change the name of the kernel"
    return kernel.source.problem("B032", message, path=place, help=remedy)


def _too_many(kernel: Kernel, place: KeyPath, directory: str) -> Problem:
    message = f"too many files under {quoted(directory)}"
    remedy = "look for symbolic links that lead back, or name a smaller directory"
    return kernel.source.problem("B035", message, path=place, help=remedy)


def _without_repeats(kernel: Kernel, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Leave out problems of a component that an upgrade has added, if one in the text has the same problem."""
    has = kernel.source.has
    known = {problem.message for problem in problems if has(problem.key)}
    return tuple(problem for problem in problems if has(problem.key) or problem.message not in known)


def _glob_problems(kernel: Kernel, path: KeyPath, table: SourceTable, files: Sequence[str]) -> Iterator[Problem]:
    """Yield the entries that name no source, and an `exclude` that leaves none; headers take no flags."""
    idle = [number for number, entry in enumerate(table.exclude) if not files_named(entry, files)]
    for number in idle:
        message = f"no source matches {quoted(table.exclude[number])}"
        yield kernel.source.problem("B041", message, path=(*path, "exclude", number), help=_sources_are(files))
    if files and table.exclude and not files_without(files, table.exclude):
        message = "no source is left: 'exclude' names every file of 'src'"
        yield kernel.source.problem("B041", message, path=(*path, "exclude"), help="leave out the table, or narrow it")

    left = [file for file in files_without(files, table.exclude) if not file.endswith(HEADERS)]
    for entry in table.file_flags:
        if not files_named(entry, left):
            message = f"no source matches {quoted(entry)}"
            where = (*path, "file-flags", entry)
            yield kernel.source.problem("B041", message, path=where, key=True, help=_sources_are(left))


def _sources_are(files: Sequence[str]) -> str:
    if not files:
        return "'src' has no file of the kernel"
    return f"the sources are {', '.join(map(quoted, files[:3]))}{', …' if len(files) > 3 else ''}"  # noqa: PLR2004


def find_license_files(tree: Tree) -> tuple[str, ...]:
    """Return the names of the license files in the folder of a kernel, sorted; links are none."""
    return license_files(tree.plain_files(""))


def license_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that are license files, sorted."""
    return tuple(sorted(path for path in paths if _NAME.fullmatch(path)))
