"""The parts of a `build.toml` that a recording asks for."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from builder.config.values import Backend, Version
from builder.port import flag_keys
from builder.port.flag_keys import FlagKeys
from builder.port.flags import Flags, Line
from builder.port.lines import CXX, GPU, of_extension, of_run
from builder.port.part import Part
from builder.port.recording import Extension, Recording, Run
from builder.wording import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The sources that bind to torch: `[torch]`, or `[extension.<name>]` for one more library."""

    src: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    keys: FlagKeys = field(default_factory=FlagKeys)
    libraries: tuple[str, ...] = ()
    stable_abi: Version | None = None
    python_abi: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentDraft:
    """One `[kernel.<name>]`."""

    name: str
    backend: Backend
    src: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    extension: str | None = None
    include: tuple[str, ...] = ()
    keys: FlagKeys = field(default_factory=FlagKeys)
    libraries: tuple[str, ...] = ()
    capabilities: tuple[str, ...] | None = None
    when: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """The bindings and components of every backend."""

    backends: tuple[Backend, ...]
    torch: Binding
    extensions: Mapping[str, Binding] = field(default_factory=dict)
    components: tuple[ComponentDraft, ...] = ()

    @property
    def include(self) -> tuple[tuple[str, ...], ...]:
        """The include folders of each table."""
        bindings = (self.torch, *self.extensions.values())
        return (*(each.include for each in bindings), *(each.include for each in self.components))


Lines = Mapping[str, Line]
_Way = tuple[FlagKeys, tuple[str, ...], tuple[str, ...] | None]
"""The flags of a component, its include folders, and its capabilities where they differ by toolkit."""


def compiled(recording: Recording, parts: Iterable[Part]) -> Compiled:
    """Return the bindings and components that the runs ask for; tell a person of things without a key."""
    runs = _by_backend(recording)
    main, *others = tuple(parts) or (None,)
    drafted = [] if main is None else _all_components(main, runs, recording)
    extensions = [_each_with_components(part, runs, recording) for part in others if part is not None]
    backends = {each.backend for _, own in extensions for each in own}
    if main is not None and backends - {each.backend for each in drafted}:
        main, drafted = _each_with_components(main, runs, recording)
    kept = [(part, _beside(part, own, {each.backend for each in drafted})) for part, own in extensions]
    kept = [(part, own) for part, own in kept if own]
    components = (*drafted, *(each for _, own in kept for each in own))
    used = {component.backend for component in components}
    found = [part for part in (main, *(part for part, _ in kept)) if part is not None]
    torch = Binding() if main is None else _binding(main, runs, drafted=bool(drafted))
    if any(part.needs_python for part in found):
        torch = replace(torch, python_abi=True, stable_abi=None)
    return Compiled(
        backends=tuple(backend for backend in runs if backend in used or not used),
        torch=torch,
        extensions={str(part.own): _binding(part, runs, drafted=True) for part, _ in kept},
        components=_of_one_name_each(components),
    )


def _all_components(part: Part, runs: Mapping[Backend, tuple[Run, ...]], recording: Recording) -> list[ComponentDraft]:
    return [each for backend, own in runs.items() for each in _components(part, backend, own, recording)]


def _each_with_components(
    part: Part, runs: Mapping[Backend, tuple[Run, ...]], recording: Recording
) -> tuple[Part, list[ComponentDraft]]:
    """Return the components of a library that has one on each of its backends: its binding, if it has no more there."""
    found = _all_components(part, runs, recording)
    wanted = {backend for backend, own in runs.items() if _line_of(part, own[-1], sorted(part.sources)) is not None}
    if wanted <= {each.backend for each in found}:
        return part, found
    whole = replace(part, binding=())
    return whole, _all_components(whole, runs, recording)


def _beside(part: Part, components: list[ComponentDraft], backends: set[Backend]) -> list[ComponentDraft]:
    """Return the components of an extension for the backends that the first one has, and tell a person of others."""
    lost = dict.fromkeys(str(each.backend) for each in components if each.backend not in backends)
    if lost:
        part.say(f"extension '{part.extension.name}' is left out for {listed(lost)}: the first extension is not for it")
    if not components:
        part.say(f"extension '{part.extension.name}' is left out: none of its sources is there")
    return [each for each in components if each.backend in backends]


def _of_one_name_each(components: Iterable[ComponentDraft]) -> tuple[ComponentDraft, ...]:
    """Return components with names of which no two are equal."""
    taken: dict[str, ComponentDraft] = {}
    for draft in components:
        numbered = (f"{draft.name}_{number}" for number in itertools.count(2))
        name = next(each for each in itertools.chain((draft.name,), numbered) if each not in taken)
        taken[name] = replace(draft, name=name)
    return tuple(taken.values())


def _by_backend(recording: Recording) -> dict[Backend, tuple[Run, ...]]:
    """Return the runs that speak for each backend."""
    found: dict[Backend, tuple[Run, ...]] = {}
    plain = next((run for run in recording.runs if run.setting.cuda is None and run.setting.hip is None), None)
    if plain is not None and plain.failure is None and plain.extensions and not _has_gpu_code(plain):
        found[Backend.CPU] = (plain,)
    cuda = tuple(run for run in recording.main if run.extensions and _has_gpu_code(run))
    if cuda:
        found[Backend.CUDA] = cuda
    rocm = next((run for run in recording.runs if run.setting.hip is not None and run.failure is None), None)
    if rocm is not None and cuda and rocm.extensions and _differs(rocm, cuda[-1]):
        found[Backend.ROCM] = (rocm,)
    return found


def _has_gpu_code(run: Run) -> bool:
    kinds = {line.language for lines in of_run(run).values() for line in lines.values()}
    return GPU in kinds or any(extension.kind == "CUDAExtension" for extension in run.extensions)


def _differs(rocm: Run, cuda: Run) -> bool:
    """Whether `setup.py` knows of ROCm: it asks for something else there than for CUDA."""
    return [_without_gencode(each) for each in rocm.extensions] != [_without_gencode(each) for each in cuda.extensions]


def _without_gencode(extension: Extension) -> Extension:
    flags = tuple(flag for flag in extension.nvcc_flags if "compute_" not in flag and flag != "-gencode")
    return replace(extension, nvcc_flags=flags, at="")


def _binding(part: Part, runs: Mapping[Backend, tuple[Run, ...]], *, drafted: bool) -> Binding:
    """Return the table of the sources that bind; where components are `drafted`, these list its headers."""
    found = {backend: _line_of(part, each[-1], part.binding) for backend, each in runs.items()}
    known = {backend: line for backend, line in found.items() if line is not None}
    if not known:
        return Binding(python_abi=part.needs_python)
    backend = Backend.CUDA if Backend.CUDA in known else next(iter(known))
    line = known[backend]
    include = part.include(line.include)
    table = "torch" if part.own is None else "extension"
    if len({_plain(each) for each in known.values()}) > 1:
        names = listed(str(each) for each in known)
        part.say(f"the flags of the binding differ between {names}: those of {backend} are written")
    src, exclude = (part.binding, ()) if drafted else part.src(part.binding, include)
    return Binding(
        src=src,
        exclude=exclude,
        include=include,
        keys=flag_keys.keys_of(line.flags, None, backend=backend, table=table, place=part.place),
        libraries=() if drafted else part.libraries,
        stable_abi=None if part.needs_python else flag_keys.stable_abi(line.flags),
        python_abi=part.needs_python,
    )


def _plain(line: Line) -> tuple[object, ...]:
    return (tuple(sorted(line.flags.macros.items(), key=str)), line.flags.rest, line.include)


def _line_of(part: Part, run: Run, sources: Iterable[str]) -> Line | None:
    lines = of_run(run).get(part.extension.name, {})
    return next((lines[path] for path in sources if path in lines), None)


def _components(part: Part, backend: Backend, runs: tuple[Run, ...], recording: Recording) -> list[ComponentDraft]:
    """Return the components of one backend: one, or one for each range of toolkits that compiles in another way."""
    of_toolkit: dict[str, Lines] = {}
    for run in runs:
        lines = of_run(run).get(part.extension.name, {})
        of_toolkit[run.setting.cuda or ""] = {
            path: line for path, line in lines.items() if path in part.sources and path not in part.binding
        }
    follows = backend is not Backend.CUDA or _follow_machine(part, recording)
    drafts: list[ComponentDraft] = []
    for bundle in _bundles(part, of_toolkit):
        own = {
            toolkit: {path: lines[path] for path in bundle if path in lines} for toolkit, lines in of_toolkit.items()
        }
        drafts += _of_bundle(part, backend, own, follows=follows)
    return _named(part, backend, drafts)


def _bundles(part: Part, of_toolkit: Mapping[str, Lines]) -> Iterable[list[str]]:
    """Return the sources in groups of which each language is compiled in one way.

    An extension of `setup.py` is one such group; a target of CMake may be several, and the largest ones stand together.
    """
    if part.extension.lines is None:
        return [sorted({path for lines in of_toolkit.values() for path in lines})]
    groups: dict[str, dict[object, list[str]]] = {CXX: {}, GPU: {}}
    for lines in of_toolkit.values():
        for path, line in sorted(lines.items()):
            groups[line.language].setdefault(_way_of(line), []).append(path)
    cxx, gpu = (sorted(each.values(), key=len, reverse=True) for each in groups.values())
    return [each for each in ([path for group in (*cxx[:1], *gpu[:1]) for path in group], *cxx[1:], *gpu[1:]) if each]


def _way_of(line: Line) -> tuple[object, ...]:
    return (*_plain(line), line.flags.undefined, line.flags.capabilities, line.flags.standard)


def _of_bundle(part: Part, backend: Backend, of_toolkit: Mapping[str, Lines], *, follows: bool) -> list[ComponentDraft]:
    wanted = {toolkit: _wanted(lines, toolkit) for toolkit, lines in of_toolkit.items()}
    for name in dict.fromkeys(name for lines in of_toolkit.values() for name in _unread(lines) if ":" in name):
        part.say(f"'{name}' is left out: other code is made for that GPU, too, and a config has one of the two")
    if follows:
        wanted = {toolkit: _archs(lines) if backend is Backend.ROCM else () for toolkit, lines in of_toolkit.items()}
    shared = flag_keys.union(wanted) if backend is Backend.CUDA else next(iter(wanted.values()), ())
    wanted = flag_keys.by_range(wanted) if shared is None else wanted
    ways = {
        toolkit: _way(part, backend, lines, wanted[toolkit] if shared is None else None)
        for toolkit, lines in of_toolkit.items()
        if lines
    }
    found = list(_grouped(of_toolkit, ways))
    drafts = []
    for condition, sources, (keys, include, capabilities) in found:
        src, exclude = part.src(sources, include, more=part.binding)
        draft = ComponentDraft(
            name="",
            backend=backend,
            src=src,
            exclude=exclude,
            extension=part.own,
            include=include,
            keys=keys,
            libraries=_libraries(part, backend),
            capabilities=capabilities if shared is None else shared or None,
            when=condition or None,
        )
        drafts.append(draft)
    return drafts


def _grouped(of_toolkit: Mapping[str, Lines], ways: Mapping[str, _Way]) -> Iterable[tuple[str, tuple[str, ...], _Way]]:
    """Yield sources that are compiled in one way, and the condition on the toolkit that they are under."""
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


def _way(part: Part, backend: Backend, lines: Lines, capabilities: tuple[str, ...] | None) -> _Way:
    flags: dict[str, Flags] = {line.language: line.flags for line in lines.values()}
    keys = flag_keys.keys_of(flags.get(CXX), flags.get(GPU), backend=backend, table="kernel", place=part.place)
    include = dict.fromkeys(folder for line in lines.values() for folder in line.include)
    return keys, part.include(include), capabilities or None


def _capabilities(lines: Lines) -> tuple[str, ...]:
    return next((line.flags.capabilities for line in lines.values() if line.language == GPU), ())


def _archs(lines: Lines) -> tuple[str, ...]:
    """Return the ROCm architectures that are named; `native` names none."""
    return tuple(name for name in _unread(lines) if name.startswith("gfx"))


def _unread(lines: Lines) -> tuple[str, ...]:
    return next((line.flags.unread for line in lines.values() if line.language == GPU), ())


def _wanted(lines: Lines, toolkit: str) -> tuple[str, ...]:
    """Return the capabilities that a toolkit compiles, of all that are asked for."""
    return flag_keys.known(_capabilities(lines), toolkit) if toolkit else ()


def _follow_machine(part: Part, recording: Recording) -> bool:
    """Whether the architectures are those of the machine's GPU, or of a variable; a person is told."""
    newest = recording.main[-1].setting.cuda if recording.main else None
    found = {
        _of_run(run, part)
        for run in recording.runs
        if run.setting.cuda == newest and run.failure is None and run.setting.cuda is not None
    }
    if len(found) > 1:
        part.say(
            "the architectures follow the GPU of the machine or TORCH_CUDA_ARCH_LIST: 'cuda-capabilities' is left out, "
            "which compiles for all that the toolkit has"
        )
    return len(found) > 1


def _of_run(run: Run, part: Part) -> tuple[str, ...]:
    extension = next((each for each in run.extensions if each.name == part.extension.name), None)
    return () if extension is None else _capabilities(of_extension(extension))


def _libraries(part: Part, backend: Backend) -> tuple[str, ...]:
    """Return the libraries that a backend has; those of another are told to a person."""
    others = [name for name in part.libraries if not name.facts.is_for(backend)]
    if others:
        part.say(f"{listed(others)} is linked, which {backend} does not have by that name")
    return tuple(name for name in part.libraries if name not in others)


def _named(part: Part, backend: Backend, drafts: list[ComponentDraft]) -> list[ComponentDraft]:
    """Return the components with names that no other one of the kernel has."""
    base = flag_keys.table_name(part.extension.name) + ("" if backend is Backend.CUDA else f"_{backend}")
    named: dict[str, ComponentDraft] = {}
    for draft in drafts:
        said = "" if draft.when is None else draft.when.replace(">=", "_from_").replace("<", "_before_")
        start = flag_keys.table_name(base + said)
        numbers = (f"{start}_{number}" for number in itertools.count(2))
        name = next(each for each in (start, *itertools.islice(numbers, len(drafts))) if each not in named)
        named[name] = replace(draft, name=name)
    return list(named.values())
