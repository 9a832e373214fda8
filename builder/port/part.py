"""One extension of a project: which of its sources are there, which bind, and what it includes."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.config import libraries
from builder.config.libraries import LibraryName
from builder.port import source_facts
from builder.port.flag_keys import Place, extension_name
from builder.port.lines import CXX, language, normal
from builder.port.recording import Extension, Recording
from builder.port.source_facts import Todo

_LINKED = "-l"
_CMAKE = "CMake"
"""The kind of an extension that is a target of CMake."""
_RENAMED = {"cuda": "cuda_driver"}
"""Names of libraries for the linker that CMake calls otherwise."""
_OF_TORCH = frozenset({"c10", "torch", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda", "cudart", "stdc++"})
"""Libraries that every kernel is linked to, or that torch's own are."""
_HARMLESS_LINK = ("-s", "-Wl,-s", "-Wl,-rpath", "-Wl,--strip", "-Wl,--no-as-needed", "-Wl,--as-needed", "-Wl,-O1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One extension, and what its files say."""

    root: Path
    todo: Todo
    extension: Extension
    own: str | None
    """Its table in `[extension]`; None for the first, which `[torch]` binds."""
    sources: frozenset[str]
    """Sources that are there."""
    binding: tuple[str, ...]
    """The sources in C++ that register ops or make a Python module."""
    needs_python: bool
    libraries: tuple[LibraryName, ...]
    absent: tuple[str, ...]
    """Folders of submodules that were not fetched."""

    @property
    def place(self) -> Place:
        """The origin of its flags."""
        return Place(root=self.root, at=self.extension.at, todo=self.todo)

    @property
    def reached(self) -> tuple[str, str]:
        """The name that Python imports in place of the extension, and the generated module that has it."""
        return "module" if self.needs_python else "ops", "_ops" if self.own is None else f"_ops_{self.own}"

    def say(self, text: str) -> None:
        """Tell a person something about the whole extension."""
        self.todo.add(text, at=self.extension.at)

    def src(
        self, sources: Iterable[str], include: tuple[str, ...], *, more: Iterable[str] = ()
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the entries of `src`, and of `exclude`: sources, and headers of them and `more` beyond the folders."""
        listed = tuple(sources)
        own = [folder for folder in include if ":" not in folder]
        headers = source_facts.headers(self.root, [*listed, *more], own)
        known = {path for path in headers if source_facts.is_path(path) and path not in {*listed, *more}}
        compiled = {path for path in known if language(path) is not None}
        for path in sorted(compiled - self.sources):
            self.todo.add(
                f"'{path}' is included by another source, and in 'src' it would be compiled by itself: "
                "rename it to end with '.inc'"
            )
        entries, others = source_facts.with_globs(self.root, listed)
        return (*entries, *source_facts.header_globs(sorted(known - compiled))), others

    def include(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Return the entries of `include`; folders outside of the project are told to a person."""
        return tuple(entry for folder in folders for entry in self._folder(folder))

    def _folder(self, folder: str) -> Iterator[str]:
        module = next((name for name in self.absent if folder == name or folder.startswith(f"{name}/")), None)
        if module is not None:
            yield from self._foreign(module, folder)
        elif folder.startswith("<"):
            self.say(f"include folder '{folder}' is of a Python package: it has no key")
        elif folder.startswith(("/", "..")) or not source_facts.is_path(folder):
            self.say(f"include folder '{folder}' is outside of the project: it has no key")
        elif not source_facts.is_folder(self.root, folder):
            self.say(f"include folder '{folder}' is left out: it is not there")
        else:
            yield folder

    def _foreign(self, module: str, folder: str) -> Iterator[str]:
        yield f"{source_facts.source_name(module)}:{normal(folder.removeprefix(module).lstrip('/') or '.')}"


def parts(recording: Recording, root: Path, todo: Todo) -> Iterator[Part]:
    """Yield the extensions of a project, each once; of the targets of a CMake project, only the ones that bind."""
    best = recording.best
    seen: set[str] = set()
    said = "" if best is None or best.setup is None else best.setup.texts.get("name", "")
    taken = {extension_name(f".{name}") for name in (said, root.name)}  # the module of the kernel is no extension
    for extension in () if best is None else best.extensions:
        if extension.name in seen:
            todo.add(f"extension '{extension.name}' is left out: there is another of that name", at=extension.at)
        elif seen and extension.kind == _CMAKE and not _part(recording, extension, root, Todo(), own=None).binding:
            todo.add(f"target '{extension.name}' is left out: no source of it registers ops or makes a Python module")
        else:
            own = _unique(extension_name(extension.name), taken) if seen else None
            yield _part(recording, extension, root, todo, own=own)
        seen.add(extension.name)


def _unique(name: str, taken: set[str]) -> str:
    """Return a name, with a number where it is taken, and take it."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    found = next(each for each in itertools.chain((name,), numbered) if each not in taken)
    taken.add(found)
    return found


def _part(recording: Recording, extension: Extension, root: Path, todo: Todo, *, own: str | None) -> Part:
    everywhere = {
        path
        for run in recording.runs
        for each in run.extensions
        if each.name == extension.name
        for path in map(normal, each.sources)
    }
    sources = frozenset(path for path in sorted(everywhere) if _is_there(root, path, extension.at, todo))
    _say_missing(root, sorted(path for path in everywhere - sources if source_facts.is_path(path)), extension.at, todo)
    pybind = {path: line for path in sorted(sources) if (line := source_facts.pybind_line(root, path)) is not None}
    registered = {path for path in sources if source_facts.library_line(root, path) is not None}
    binding = tuple(sorted(path for path in {*pybind, *registered} if language(path) == CXX))
    _say_binding(extension, sources, binding, pybind, todo)
    return Part(
        root=root,
        todo=todo,
        extension=extension,
        own=own,
        sources=sources,
        binding=binding,
        needs_python=bool(pybind),
        libraries=tuple(dict.fromkeys((*_libraries(extension, root, todo), *_included(sources, root)))),
        absent=recording.absent,
    )


def _is_there(root: Path, path: str, at: str, todo: Todo) -> bool:
    if path.startswith(("/", "<", "..")) or not source_facts.is_path(path):
        todo.add(f"source '{path}' is outside of the project", at=at)
        return False
    if not source_facts.is_file(root, path):
        return False
    if language(path) is None:
        todo.add(f"source '{path}' is of no language that a component compiles", at=at)
        return False
    return True


def _say_missing(root: Path, paths: list[str], at: str, todo: Todo) -> None:
    """Tell a person of sources that are not there."""
    missing = [path for path in paths if not source_facts.is_file(root, path)]
    if not missing:
        return
    more = f" and {len(missing) - 1} more" if missing[1:] else ""
    text = f"source '{missing[0]}'{more} is not there: it is generated or fetched before the build"
    todo.add(text, at=source_facts.line_of(root, at, missing[0]))


def _say_binding(
    extension: Extension, sources: frozenset[str], binding: tuple[str, ...], pybind: Mapping[str, int], todo: Todo
) -> None:
    """Tell a person what has to be done about the binding."""
    if sources and not binding and not pybind:
        todo.add("no source registers ops or makes a Python module: write a binding", at=extension.at)
    elif sources and not binding:
        todo.add("the binding is in a source for the GPU: it stays in the component", at=extension.at)


def _included(sources: Iterable[str], root: Path) -> Iterator[LibraryName]:
    """Yield the libraries whose headers a source includes, and which an environment only has where they are named."""
    for source in sorted(sources):
        for header in source_facts.headers_of(root, source):
            name = libraries.of_header(header)
            if name is not None and name.facts.part != "libraries":
                yield name


def _libraries(extension: Extension, root: Path, todo: Todo) -> Iterator[LibraryName]:
    linked = [*extension.libraries]
    for flag in extension.link_flags:
        if flag.startswith(_LINKED):
            linked.append(flag.removeprefix(_LINKED))
        elif not flag.startswith(_HARMLESS_LINK):
            todo.add(f"linker flag '{flag}' is left out", at=source_facts.line_of(root, extension.at, flag))
    for name in dict.fromkeys(linked):
        if name in _OF_TORCH:
            continue
        known = _RENAMED.get(name, name)
        if known in LibraryName.names():
            yield LibraryName(known)
        else:
            place = source_facts.line_of(root, extension.at, name)
            todo.add(f"library '{name}' is linked, and no key says so", at=place)
    for path in extension.extra_objects:
        todo.add(f"'{path}' is linked as it is: build it from sources", at=extension.at)
