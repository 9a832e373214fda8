"""Compare the compile lines of a config with those of its `setup.py`, file by file."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from builder.config.values import Backend
from builder.errors import BuilderError
from builder.kernel import Kernel, load
from builder.kernel.source_set import package_directory
from builder.matrix import rows
from builder.port import commands, conditions, configure, submodules, write
from builder.port.lines import GPU, Line, normal, of_run
from builder.port.record import copy, record
from builder.port.recording import Recording, Run
from builder.port.settings import Setting, facts, settings, standard


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one source is compiled with by one of the two alone."""

    source: str
    missing: tuple[str, ...] = ()
    """What `setup.py` has and the config has not."""
    extra: tuple[str, ...] = ()
    """What the config has and `setup.py` has not."""


def in_groups(differences: Iterable[Difference]) -> Iterator[str]:
    """Yield a line for each thing that is different, with the first of the sources that it is different in."""
    sources: dict[str, list[str]] = {}
    for each in differences:
        for what, words in (("missing", each.missing), ("extra", each.extra)):
            for word in words:
                sources.setdefault(f"{what} {word}", []).append(each.source)
    for said, named in sources.items():
        more = f" and {len(named) - 1} more" if named[1:] else ""
        yield f"{named[0]}{more}: {said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison for one machine."""

    setting: Setting
    sources: int
    """Sources that are compiled by both in the same way."""
    differences: tuple[Difference, ...]


def verify(
    directory: Path,
    *,
    home: Path | None,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
    sandboxed: bool,
    seconds: float,
) -> Iterator[Comparison]:
    """Yield the comparison for each machine that the config is for: each CUDA toolkit of the matrix, and none.

    Raises:
        BuilderError: the config or `setup.py` cannot be read, it compiles nothing, or no backend can be compared.
        ToolError: CMake cannot configure the rendered project.
    """
    config = load(directory).config
    among = tuple(machines(config.general.backends))
    if not among:
        raise BuilderError(
            "nothing can be compared: the kernel is for neither CUDA nor the CPU",
            help="compile lines of other backends are not compared",
        )
    seen = tuple(setting for _, setting in among)
    recording = record(directory, home=home, variables=variables, sandboxed=sandboxed, seconds=seconds, among=seen)
    if all(run.failure is None and not run.extensions for run in recording.runs):
        raise write.nothing_compiled(recording, recording.runs[0], directory)
    with tempfile.TemporaryDirectory(prefix="builder-port-") as scratch:
        kernel = _copy(directory, Path(scratch).resolve() / "kernel")
        for (backend, setting), run in zip(among, recording.runs, strict=True):
            if run.failure is not None:
                at = f"{run.at}: " if run.at else ""
                raise BuilderError(f"setup.py cannot be recorded with {setting.name}\n  {at}{run.failure}")
            found, roots = configure.compile_commands(
                kernel, backend, setting, Path(scratch).resolve(), environ=environ
            )
            yield _compared(run, recording, commands.lines(found, roots), directory)


def machines(backends: Iterable[Backend]) -> Iterator[tuple[Backend, Setting]]:
    """Yield the machines on which a kernel can be compared, with the backend that is compared there."""
    built = {row.toolkit for row in rows() if row.backend is Backend.CUDA}
    for setting in settings():
        if setting.is_main and setting.cuda in built and Backend.CUDA in backends:
            yield Backend.CUDA, setting
        elif setting.cuda is None and setting.hip is None and Backend.CPU in backends:
            yield Backend.CPU, setting


def uncompared(directory: Path) -> tuple[Backend, ...]:
    """Return the backends of a kernel whose compile lines are not compared."""
    named = load(directory).config.general.backends
    compared = {backend for backend, _ in machines(named)}
    return tuple(backend for backend in dict.fromkeys(named) if backend not in compared)


def _copy(directory: Path, target: Path) -> Kernel:
    """Return a copy of a kernel; a Python package that is not there yet is an empty one."""
    copy(directory, target)
    package = target / package_directory(load(target).config)
    if not package.is_dir():
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    return load(target)


def _compared(run: Run, recording: Recording, found: Mapping[str, list[Line]], directory: Path) -> Comparison:
    wanted: dict[str, list[Line]] = {}
    for lines in of_run(run).values():
        for source, line in lines.items():
            wanted.setdefault(source, []).append(_renamed(line, recording, directory))
    sources = sorted({*wanted, *found})
    differences = [difference(source, wanted.get(source, []), found.get(source, []), run.setting) for source in sources]
    own = tuple(each for each in differences if each is not None)
    return Comparison(setting=run.setting, sources=len(sources) - len(own), differences=own)


def _renamed(line: Line, recording: Recording, directory: Path) -> Line:
    """Return a line with folders of submodules named as foreign sources, which they are in the config."""
    modules = {path: submodules.source_name(path) for path, _ in submodules.declared(directory)}
    absent = {path: name for path, name in modules.items() if path in recording.absent}
    include = tuple(commands.relative(folder, absent) for folder in line.include)
    return Line(language=line.language, flags=line.flags, include=include)


def difference(source: str, wanted: list[Line], found: list[Line], setting: Setting) -> Difference | None:
    """Return what is different in the lines of one source, which may be compiled several times."""
    if not wanted or not found:
        said = ("the source itself",)
        return Difference(source=source, missing=said if wanted else (), extra=said if found else ())
    left = [(line, canonical(line)) for line in found]
    missing: list[str] = []
    extra: list[str] = []
    for line in wanted:
        own = canonical(line)
        if not left:
            missing.append("another compile of it")
            continue
        nearest = min(left, key=lambda each: len(own ^ each[1]))
        left.remove(nearest)
        missing += sorted(own - nearest[1])
        extra += sorted(nearest[1] - own)
        lost, more = architectures_of_one(line, nearest[0], setting)
        missing += lost
        extra += more
    extra += ["another compile of it" for _ in left]
    return Difference(source=source, missing=tuple(missing), extra=tuple(extra)) if missing or extra else None


def canonical(line: Line) -> frozenset[str]:
    """Return a line as words that can be compared, without what every build has."""
    found = {
        f"-D{name}" if value in {None, "1"} else f"-D{name}={value}"
        for name, value in line.flags.macros.items()
        if name not in _own()["macros"] and not name.endswith("_EXPORTS")
    }
    found |= {f"-U{name}" for name in line.flags.undefined if name not in _taken_away()}
    found |= {f"-I{folder}" for folder in map(normal, line.include) if not _is_given(folder)}
    wanted = line.flags.standard
    if wanted is not None and not (wanted.isdigit() and int(wanted) <= standard()):
        found.add(f"-std=c++{wanted}")
    joined = (" ".join(flag) for flag in line.flags.rest)
    return frozenset(found | {flag for flag in joined if not _ours().fullmatch(flag)})


def _is_given(folder: str) -> bool:
    return folder in _own()["include"] or folder.startswith(("<cuda>", "<torch>", "<python>", "<headers>", "<build>"))


@cache
def _own() -> Mapping[str, list[str]]:
    found: Mapping[str, list[str]] = facts()["rendered"]
    return found


@cache
def _ours() -> "re.Pattern[str]":
    return re.compile("|".join(f"(?:{each})" for each in _own()["flags"]))


@cache
def _taken_away() -> frozenset[str]:
    own = facts()["nvcc"]["flags"]
    return frozenset(flag.removeprefix("-D").partition("=")[0] for flag in own if flag.startswith("-D"))


def architectures_of_one(wanted: Line, found: Line, setting: Setting) -> tuple[list[str], list[str]]:
    """Return the architectures that only one of two lines has; where `setup.py` names none, the machine chooses."""
    if wanted.language != GPU or setting.cuda is None or not wanted.flags.capabilities:
        return [], []
    compiled = found.flags.capabilities
    missing = [
        name
        for name in conditions.known(wanted.flags.capabilities, setting.cuda)
        if name not in compiled and f"{name}+PTX" not in compiled and not conditions.covered(name, compiled)
    ]
    plain = {name.removesuffix("+PTX") for name in wanted.flags.capabilities}
    extra = [name for name in compiled if name.removesuffix("+PTX") not in plain]
    return [f"architecture {name}" for name in missing], [f"architecture {name}" for name in extra]
