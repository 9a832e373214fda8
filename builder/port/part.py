"""An extension of a project: its existing sources, its binding, and its includes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.config import libraries
from builder.config.libraries import LibraryName
from builder.port import source_facts
from builder.port.flag_keys import extension_name, unused
from builder.port.lines import CXX, language, normal
from builder.port.recording import Extension, Recording, Run
from builder.port.source_facts import Place, Todo

_LINKED = "-l"
_CMAKE = "CMake"
"""The kind of an extension that is a CMake target."""
_RENAMED = {"cuda": "cuda_driver"}
"""Names of libraries in CMake that differ from the linker's."""
_OF_TORCH = frozenset({"c10", "torch", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda", "cudart", "stdc++"})
"""Libraries that every kernel links to, or that belong to torch."""
_HARMLESS_LINK = ("-s", "-Wl,-s", "-Wl,-rpath", "-Wl,--strip", "-Wl,--no-as-needed", "-Wl,--as-needed", "-Wl,-O1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An extension, with facts from its files."""

    place: Place
    """The call that creates it."""
    extension: Extension
    own: str | None
    """Its name in `[extension]`; None for the first one, which `[torch]` binds."""
    sources: frozenset[str]
    """The existing sources."""
    binding: tuple[str, ...]
    """The C++ sources that register ops or define a Python module."""
    needs_python: bool
    libraries: tuple[LibraryName, ...]
    absent: tuple[str, ...]
    """Folders of submodules that were not fetched."""

    @property
    def reached(self) -> tuple[str, str]:
        """The new import name of the extension, and the generated module that defines it."""
        return "module" if self.needs_python else "ops", "_ops" if self.own is None else f"_ops_{self.own}"

    def src(
        self, sources: Iterable[str], include: tuple[str, ...], *, more: Iterable[str] = ()
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the entries of `src` and `exclude`: sources, and their and `more`'s headers outside `include`."""
        root, listed = self.place.root, tuple(sources)
        own = [folder for folder in include if ":" not in folder]
        headers = source_facts.headers(root, [*listed, *more], own)
        known = {path for path in headers if source_facts.is_path(path) and path not in {*listed, *more}}
        compiled = {path for path in known if language(path) is not None}
        for path in sorted(compiled - self.sources):
            self.place.todo.add(
                f"'{path}' is included by another source, and in 'src' it would be compiled by itself: "
                "rename it to end with '.inc'"
            )
        entries, others = source_facts.with_globs(root, listed)
        return (*entries, *source_facts.header_globs(sorted(known - compiled))), others

    def include(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Return the entries of `include`; report folders outside of the project."""
        return tuple(entry for folder in folders if (entry := self._include(folder)) is not None)

    def _include(self, folder: str) -> str | None:
        module = next((name for name in self.absent if folder == name or folder.startswith(f"{name}/")), None)
        if module is not None:
            return f"{source_facts.source_name(module)}:{normal(folder.removeprefix(module).lstrip('/') or '.')}"
        if folder.startswith("<"):
            self.place.say(f"include folder '{folder}' is of a Python package: it has no key")
        elif folder.startswith(("/", "..")) or not source_facts.is_path(folder):
            self.place.say(f"include folder '{folder}' is outside of the project: it has no key")
        elif not source_facts.is_folder(self.place.root, folder):
            self.place.say(f"include folder '{folder}' is left out: it is not there")
        else:
            return folder
        return None


def parts(recording: Recording, best: Run, root: Path, todo: Todo) -> Iterator[Part]:
    """Yield each extension of the `best` run once; of a CMake project, only targets with a binding."""
    seen: set[str] = set()
    said = "" if best.setup is None else best.setup.texts.get("name", "")
    taken = {extension_name(f".{name}") for name in (said, root.name)}  # the kernel's own module is not an extension
    for extension in best.extensions:
        place, quiet = (Place(root=root, at=extension.at, todo=each) for each in (todo, Todo()))
        if extension.name in seen:
            place.say(f"extension '{extension.name}' is left out: there is another of that name")
        elif not seen:
            yield _part(recording, extension, place, own=None)
        elif extension.kind == _CMAKE and not _part(recording, extension, quiet, own=None).binding:
            todo.add(f"target '{extension.name}' is left out: no source of it registers ops or makes a Python module")
        else:
            own = unused(extension_name(extension.name), taken)
            taken.add(own)
            yield _part(recording, extension, place, own=own)
        seen.add(extension.name)


def say_twins(among: Iterable[Part]) -> None:
    """Tell a person of libraries that register the same ops: a process loads one of them."""
    first: dict[tuple[str, ...], Part] = {}
    for part in among:
        twin = first.setdefault(part.binding or (part.extension.name,), part)
        if twin is not part and not part.needs_python:
            ours, theirs = part.reached[1], twin.reached[1]
            text = f"'{ours}' and '{theirs}' register the same ops, those of '{part.binding[0]}': import one of the two"
            part.place.say(text)


def _part(recording: Recording, extension: Extension, place: Place, *, own: str | None) -> Part:
    asked = {
        normal(path)
        for run in recording.runs
        for each in run.extensions
        if each.name == extension.name
        for path in each.sources
    }
    sources = frozenset(path for path in sorted(asked) if _is_there(path, place))
    _say_missing(sorted(path for path in asked - sources if source_facts.is_path(path)), place)
    modules = {path for path in sources if source_facts.makes_module(place.root, path)}
    registering = {path for path in sources if source_facts.registers_ops(place.root, path)}
    binding = tuple(sorted(path for path in modules | registering if language(path) == CXX))
    if sources and not binding:
        in_gpu = "the binding is in a source for the GPU: it stays in the component"
        place.say(in_gpu if modules else "no source registers ops or makes a Python module: write a binding")
    return Part(
        place=place,
        extension=extension,
        own=own,
        sources=sources,
        binding=binding,
        needs_python=bool(modules),
        libraries=tuple(dict.fromkeys((*_linked(extension, place), *_included(sources, place.root)))),
        absent=recording.absent,
    )


def _is_there(path: str, place: Place) -> bool:
    if path.startswith(("/", "<", "..")) or not source_facts.is_path(path):
        place.say(f"source '{path}' is outside of the project")
        return False
    if not source_facts.is_file(place.root, path):
        return False
    if language(path) is None:
        place.say(f"source '{path}' is of no language that a component compiles")
        return False
    return True


def _say_missing(paths: list[str], place: Place) -> None:
    missing = [path for path in paths if not source_facts.is_file(place.root, path)]
    if missing:
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        text = f"source '{missing[0]}'{more} is not there: it is generated or fetched before the build"
        place.say(text, near=missing[0])


def _included(sources: Iterable[str], root: Path) -> Iterator[LibraryName]:
    """Yield the libraries whose headers a source includes, and which an environment has only if they are declared."""
    for source in sorted(sources):
        for header in source_facts.headers_of(root, source):
            name = libraries.of_header(header)
            if name is not None and name.facts.part != "libraries":
                yield name


def _linked(extension: Extension, place: Place) -> Iterator[LibraryName]:
    linked = [*extension.libraries]
    for flag in extension.link_flags:
        if flag.startswith(_LINKED):
            linked.append(flag.removeprefix(_LINKED))
        elif not flag.startswith(_HARMLESS_LINK):
            place.say(f"linker flag '{flag}' is left out", near=flag)
    for name in dict.fromkeys(linked):
        if name in _OF_TORCH:
            continue
        known = _RENAMED.get(name, name)
        if known in LibraryName.names():
            yield LibraryName(known)
        else:
            place.say(f"library '{name}' is linked, and no key says so", near=name)
    for path in extension.extra_objects:
        place.say(f"'{path}' is linked as it is: build it from sources")
