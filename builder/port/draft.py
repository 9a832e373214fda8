"""Draft the tables of sources from a recording."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.config.values import Backend, Version
from builder.port import flag_keys
from builder.port.flag_keys import FlagKeys
from builder.port.flags import Flags, Line
from builder.port.lines import CXX, GPU, of_run
from builder.port.part import Part
from builder.port.recording import Extension, Recording, Run
from builder.port.settings import Setting
from builder.port.source_facts import Todo
from builder.port.tables import TableDraft, Value
from builder.wording import listed

_GPU_KEYS = {Backend.CUDA: ("cuda-capabilities", "cuda-flags"), Backend.ROCM: ("rocm-archs", "hip-flags")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesDraft:
    """Sources compiled with the same settings: `[torch]`, `[extension.<name>]` or `[kernel.<name>]`."""

    name: str
    """The name of the table; for a component, without `kernel.`."""
    backend: Backend | None = None
    """The backend of a component; None for a table of binding sources."""
    extension: str | None = None
    when: str | None = None
    src: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    flags: FlagKeys = field(default_factory=FlagKeys)
    libraries: tuple[str, ...] = ()
    stable_abi: Version | None = None
    python_abi: bool = False

    @property
    def table(self) -> TableDraft:
        """The table of the config."""
        keys: dict[str, Value] = {"src": self.src, "exclude": self.exclude, "include": self.include}
        flags: dict[str, Value] = {"defines": dict(self.flags.defines), "cxx-flags": self.flags.cxx_flags}
        if self.backend is None:
            abi = None if self.stable_abi is None else str(self.stable_abi)
            last = {"stable-abi": abi, "python-abi": "cpython" if self.python_abi else None}
            return TableDraft(name=self.name, keys={**keys, **flags, "libraries": self.libraries, **last})
        first: dict[str, Value] = {"backend": str(self.backend), "depends": ("torch",), "extension": self.extension}
        first["when"] = None if self.when is None else {"cuda": self.when}
        if self.backend in _GPU_KEYS:
            architectures, gpu_flags = _GPU_KEYS[self.backend]
            flags = {architectures: self.capabilities, **flags, gpu_flags: self.flags.gpu_flags}
        return TableDraft(name=f"kernel.{self.name}", keys={**first, **keys, **flags, "libraries": self.libraries})


Runs = Mapping[Backend, tuple[Run, ...]]
"""The runs that count for each backend."""
Lines = Mapping[str, Line]


def compiled(recording: Recording, parts: Sequence[Part]) -> tuple[tuple[Backend, ...], tuple[SourcesDraft, ...]]:
    """Return the backends that the runs use, and the drafts of `[torch]`, other extensions, and their components.

    Things without a key are reported.
    """
    runs = _by_backend(recording)
    main, *others = (_in_one_way(part, runs) for part in parts)
    main, drafted = _each_with_components(main, runs, recording)
    extensions = [_each_with_components(part, runs, recording) for part in others]
    beside = [(part, _beside(part, own, {each.backend for each in drafted})) for part, own in extensions]
    kept = [(part, own) for part, own in beside if own]
    components = _of_one_name_each((*drafted, *(each for _, own in kept for each in own)))
    used = {component.backend for component in components}
    torch = _binding(main, runs, drafted=bool(drafted))
    if any(part.needs_python for part in (main, *(part for part, _ in kept))):
        torch = replace(torch, python_abi=True, stable_abi=None)
    backends = tuple(backend for backend in runs if backend in used or not used)
    return backends, (torch, *(_binding(part, runs, drafted=True) for part, _ in kept), *components)


def _in_one_way(part: Part, runs: Runs) -> Part:
    """Return a library whose binding is compiled in one way for all: components compile what is not."""
    each = [(backend, _lines(part, run)) for backend, own in runs.items() for run in own]
    lines = [{path: _plain(line, backend) for path, line in found.items()} for backend, found in each if found]
    everywhere = tuple(path for path in part.binding if all(path in found for found in lines))
    ways = {way for found in lines for path, way in found.items() if path in everywhere}
    return replace(part, binding=everywhere if len(ways) <= 1 else ())


def _all_components(part: Part, runs: Runs, recording: Recording) -> list[SourcesDraft]:
    return [each for backend, own in runs.items() for each in _components(part, backend, own, recording)]


def _each_with_components(part: Part, runs: Runs, recording: Recording) -> tuple[Part, list[SourcesDraft]]:
    """Return the components of a library with one on each backend; its binding moves if it has no other sources."""
    found = _all_components(part, runs, recording)
    wanted = {backend for backend, own in runs.items() if _line_of(part, own[-1], sorted(part.sources)) is not None}
    if wanted <= {each.backend for each in found}:
        return part, found
    whole = replace(part, binding=())
    return whole, _all_components(whole, runs, recording)


def _beside(part: Part, components: list[SourcesDraft], backends: set[Backend | None]) -> list[SourcesDraft]:
    """Return the components of an extension for the first extension's backends, and report the others."""
    name = part.extension.name
    lost = dict.fromkeys(str(each.backend) for each in components if each.backend not in backends)
    if lost:
        part.place.say(f"extension '{name}' is left out for {listed(lost)}: the first extension is not for it")
    if not components:
        part.place.say(f"extension '{name}' is left out: none of its sources is there")
    return [each for each in components if each.backend in backends]


def _of_one_name_each(components: Iterable[SourcesDraft]) -> tuple[SourcesDraft, ...]:
    """Rename components so that no two names are equal."""
    taken: dict[str, SourcesDraft] = {}
    for draft in components:
        name = flag_keys.unused(draft.name, taken)
        taken[name] = replace(draft, name=name)
    return tuple(taken.values())


def _by_backend(recording: Recording) -> Runs:
    found: dict[Backend, tuple[Run, ...]] = {}
    plain = next((run for run in recording.runs if run.setting.cuda is None and run.setting.hip is None), None)
    if plain is not None and plain.failure is None and plain.extensions and not _has_gpu_code(plain):
        found[Backend.CPU] = (plain,)
    # What is for the host alone is for CUDA where only machines with CUDA get it.
    cuda = tuple(run for run in recording.main if run.extensions and (not found or _has_gpu_code(run)))
    if cuda:
        found[Backend.CUDA] = cuda
    rocm = next((run for run in recording.runs if run.setting.hip is not None and run.failure is None), None)
    if rocm is not None and rocm.extensions and (not found or (cuda and not _is_same(rocm, cuda[-1]))):
        found[Backend.ROCM] = (rocm,)  # setup.py knows of ROCm, if it asks for something else there than for CUDA
    return found


def toolkit_bounds(recording: Recording, todo: Todo) -> TableDraft | None:
    """Return the bounds of CUDA toolkits where `setup.py` refuses older or newer ones, and tell a person its words."""
    refused = outside(recording)
    if not refused:
        return None
    served = [run.setting for run in recording.main if run.extensions]
    tried = [run for run in recording.runs if run.setting.is_main]
    keys: dict[str, Value] = {
        "minver": None if tried[0].setting == served[0] else served[0].cuda,
        "maxver": None if tried[-1].setting == served[-1] else served[-1].cuda,
    }
    written = " and ".join(f"general.cuda.{name} = {value}" for name, value in keys.items() if value is not None)
    first = next(run for run in tried if run.setting in refused)
    names = listed(setting.name for setting in refused)
    todo.add(f"{written}: setup.py refuses {names}: {first.failure or 'it compiles nothing'}", at=first.at)
    return TableDraft(name="general.cuda", keys=keys)


def outside(recording: Recording) -> tuple[Setting, ...]:
    """Return the machines with toolkits that are older or newer than all that `setup.py` compiles something with."""
    tried = [run.setting for run in recording.runs if run.setting.is_main]
    served = [run.setting for run in recording.main if run.extensions]
    if not served:
        return ()
    return (*tried[: tried.index(served[0])], *tried[tried.index(served[-1]) + 1 :])


def _has_gpu_code(run: Run) -> bool:
    kinds = {line.language for lines in of_run(run).values() for line in lines.values()}
    return GPU in kinds or any(extension.kind == "CUDAExtension" for extension in run.extensions)


def _is_same(run: Run, other: Run) -> bool:
    return _plain_extensions(run) == _plain_extensions(other)


def _plain_extensions(run: Run) -> list[Extension]:
    """Return the extensions of a run without their lines, their architectures, and folders of the toolkit."""
    found = []
    for each in run.extensions:
        flags = tuple(flag for flag in each.nvcc_flags if "compute_" not in flag and flag != "-gencode")
        # With another toolkit, "{CUDA_HOME}/include" is "None/include".
        own = tuple(folder for folder in each.include_dirs if not folder.startswith(("<", "None/")))
        found.append(replace(each, nvcc_flags=flags, include_dirs=own, library_dirs=(), at=""))
    return found


def _binding(part: Part, runs: Runs, *, drafted: bool) -> SourcesDraft:
    """Return the table of the binding sources; if components are `drafted`, they list its headers."""
    name = "torch" if part.own is None else f"extension.{part.own}"
    found = {backend: _line_of(part, each[-1], part.binding) for backend, each in runs.items()}
    known = {backend: line for backend, line in found.items() if line is not None}
    if not known:
        return SourcesDraft(name=name)
    backend = Backend.CUDA if Backend.CUDA in known else next(iter(known))
    line = known[backend]
    include = part.include(line.include)
    src, exclude = (part.binding, ()) if drafted else part.src(part.binding, include)
    return SourcesDraft(
        name=name,
        src=src,
        exclude=exclude,
        include=include,
        flags=flag_keys.keys_of(line.flags, None, backend=backend, place=part.place),
        libraries=() if drafted else part.libraries,
        stable_abi=flag_keys.stable_abi(line.flags) if part.own is None else None,
    )


def _plain(line: Line, backend: Backend | None = None) -> tuple[object, ...]:
    given = flag_keys.GIVEN if backend is Backend.ROCM else set()
    macros = sorted((each for each in line.flags.macros.items() if each[0] not in given), key=str)
    return (tuple(macros), line.flags.rest, line.include)


def _lines(part: Part, run: Run) -> Lines:
    return of_run(run).get(part.extension.name, {})


def _line_of(part: Part, run: Run, sources: Iterable[str]) -> Line | None:
    lines = _lines(part, run)
    return next((lines[path] for path in sources if path in lines), None)


def _components(part: Part, backend: Backend, runs: tuple[Run, ...], recording: Recording) -> tuple[SourcesDraft, ...]:
    """Return the components of one backend: one, or one for each range of toolkits with different settings."""
    compiled_here = part.sources.difference(part.binding)
    of_toolkit = {
        run.setting.cuda or "": {path: line for path, line in _lines(part, run).items() if path in compiled_here}
        for run in runs
    }
    follows = backend is not Backend.CUDA or _follow_machine(part, runs, recording)
    drafts: list[SourcesDraft] = []
    for bundle in _bundles(part, of_toolkit):
        own = {
            toolkit: {path: lines[path] for path in bundle if path in lines} for toolkit, lines in of_toolkit.items()
        }
        drafts += _of_bundle(part, backend, own, follows=follows)
    return _of_one_name_each(drafts)


def _bundles(part: Part, of_toolkit: Mapping[str, Lines]) -> Iterable[list[str]]:
    """Group the sources so that each language in a group has the same settings.

    An extension of `setup.py` is one group; a CMake target may be several, whose largest sets are combined.
    """
    if part.extension.lines is None:
        return [sorted({path for lines in of_toolkit.values() for path in lines})]
    groups: dict[str, dict[object, list[str]]] = {CXX: {}, GPU: {}}
    for lines in of_toolkit.values():
        for path, line in sorted(lines.items()):
            way = (*_plain(line), line.flags.undefined, line.flags.capabilities, line.flags.standard)
            groups[line.language].setdefault(way, []).append(path)
    cxx, gpu = (sorted(each.values(), key=len, reverse=True) for each in groups.values())
    return [each for each in ([path for group in (*cxx[:1], *gpu[:1]) for path in group], *cxx[1:], *gpu[1:]) if each]


def _of_bundle(
    part: Part, backend: Backend, of_toolkit: Mapping[str, Lines], *, follows: bool
) -> Iterator[SourcesDraft]:
    """Yield the components of one bundle; if the flags follow the machine's GPU, they list no capabilities."""
    gpu = {toolkit: _gpu_flags(lines) for toolkit, lines in of_toolkit.items()}
    for name in dict.fromkeys(name for flags in gpu.values() for name in flags.unread if ":" in name):
        part.place.say(f"'{name}' is left out: other code is made for that GPU, too, and a config has one of the two")
    if backend is Backend.ROCM:
        # `native` names no capability.
        wanted = {
            toolkit: tuple(name for name in flags.unread if name.startswith("gfx")) for toolkit, flags in gpu.items()
        }
    else:
        known = flag_keys.known
        wanted = {toolkit: () if follows else known(flags.capabilities, toolkit) for toolkit, flags in gpu.items()}
    shared = flag_keys.union(wanted) if backend is Backend.CUDA else next(iter(wanted.values()), ())
    named = flag_keys.by_range(wanted) if shared is None else dict.fromkeys(wanted, shared)
    ways = {toolkit: _way(part, backend, lines, named[toolkit]) for toolkit, lines in of_toolkit.items() if lines}
    base = flag_keys.table_name(part.extension.name) + ("" if backend is Backend.CUDA else f"_{backend}")
    for condition, sources, way in _grouped(of_toolkit, ways):
        src, exclude = part.src(sources, way.include, more=part.binding)
        yield replace(
            way,
            name=flag_keys.table_name(base + condition.replace(">=", "_from_").replace("<", "_before_")),
            src=src,
            exclude=exclude,
            libraries=_libraries(part, backend),
            when=condition or None,
        )


def _gpu_flags(lines: Lines) -> Flags:
    return next((line.flags for line in lines.values() if line.language == GPU), Flags())


def _way(part: Part, backend: Backend, lines: Lines, capabilities: tuple[str, ...]) -> SourcesDraft:
    """Return a component without its sources."""
    flags: dict[str, Flags] = {line.language: line.flags for line in lines.values()}
    keys = flag_keys.keys_of(flags.get(CXX), flags.get(GPU), backend=backend, place=part.place)
    include = part.include(dict.fromkeys(folder for line in lines.values() for folder in line.include))
    return SourcesDraft(
        name="", backend=backend, extension=part.own, include=include, flags=keys, capabilities=capabilities
    )


def _grouped(
    of_toolkit: Mapping[str, Lines], ways: Mapping[str, SourcesDraft]
) -> Iterator[tuple[str, tuple[str, ...], SourcesDraft]]:
    """Yield a condition on the toolkit, the sources compiled with the same settings under it, and these settings."""
    among = list(of_toolkit)
    for way in dict.fromkeys(ways.values()):
        toolkits = [toolkit for toolkit in among if ways.get(toolkit) == way]
        groups: dict[tuple[str, ...], list[str]] = {}
        for source in sorted({source for toolkit in toolkits for source in of_toolkit[toolkit]}):
            holds = tuple(toolkit for toolkit in toolkits if source in of_toolkit[toolkit])
            groups.setdefault(holds, []).append(source)
        for holds, sources in groups.items():
            for condition in flag_keys.when(holds, among) or ("",):
                yield condition, tuple(sources), way


def _follow_machine(part: Part, runs: tuple[Run, ...], recording: Recording) -> bool:
    """Whether the architectures are any that the machine's GPU has, or a variable; a person is told."""
    whole = [run for run in runs if run.setting.has_every_gpu]
    if any(_names_its_own(part, run) for run in whole):
        part.place.say(
            "the architectures follow the GPU of the machine or TORCH_CUDA_ARCH_LIST: 'cuda-capabilities' has those of "
            "a machine with every GPU"
        )
        return False
    newest = recording.main[-1].setting.cuda if recording.main else None
    found = {
        _gpu_flags(_lines(part, run)).capabilities
        for run in recording.runs
        if run.setting.cuda == newest and run.failure is None and run.setting.cuda is not None
    }
    if len(found) > 1 or whole:
        part.place.say(
            "the architectures follow the GPU of the machine or TORCH_CUDA_ARCH_LIST: 'cuda-capabilities' is left out, "
            f"which compiles for all that the toolkit has{_how_to_compare(found, part, recording)}"
        )
    return len(found) > 1 or bool(whole)


def _how_to_compare(found: Iterable[Sequence[str]], part: Part, recording: Recording) -> str:
    """Say how `--verify` finds no difference where the variable keeps `setup.py` from naming architectures."""
    listing = (run for run in recording.runs if run.setting.arch_list is not None and run.failure is None)
    if any(found) and any(not _gpu_flags(_lines(part, run)).capabilities for run in listing):
        return "; to compare, give both commands --env TORCH_CUDA_ARCH_LIST=9.0, with which setup.py names none itself"
    return ""


def _names_its_own(part: Part, run: Run) -> bool:
    """Whether a run of a machine with every GPU compiles for others than these."""
    compiled = {name.removesuffix("+PTX") for name in _gpu_flags(_lines(part, run)).capabilities}
    return bool(compiled) and compiled != set((run.setting.arch_list or "").split(";"))


def _libraries(part: Part, backend: Backend) -> tuple[str, ...]:
    """Return the libraries that a backend has; report those of other backends."""
    others = [name for name in part.libraries if not name.facts.is_for(backend)]
    if others:
        part.place.say(f"{listed(others)} is linked, which {backend} does not have by that name")
    return tuple(name for name in part.libraries if name not in others)
