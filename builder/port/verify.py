"""Compare the compile lines of a config with those of its setup.py, file by file."""

import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from builder.config import Config
from builder.config.values import Backend
from builder.errors import BuilderError, ToolError
from builder.kernel import Kernel, load
from builder.kernel.source_set import package_directory
from builder.matrix import rows, select
from builder.port import flag_keys, source_facts
from builder.port.flags import Line
from builder.port.lines import (
    GPU,
    Command,
    is_rendered,
    is_rendered_macro,
    lines_of,
    normal,
    of_run,
    read_commands,
    relative,
)
from builder.port.record import copy, record
from builder.port.recording import Recording, Run
from builder.port.settings import Setting, facts, make_machine, settings, standard, write_text
from builder.port.variables import nothing_compiled
from builder.render import render
from builder.render.external_sources import header_calls as header_libraries
from builder.run import run

_COMPILER = """set(CMAKE_CUDA_COMPILER_FORCED TRUE)
set(CMAKE_CUDA_COMPILER_ID_RUN TRUE)
set(CMAKE_CUDA_COMPILER_ID NVIDIA)
set(CMAKE_CUDA_COMPILER_VERSION {version}.0)
set(CMAKE_CUDA_COMPILER_TOOLKIT_ROOT "{root}")
set(CMAKE_CUDA_COMPILER_LIBRARY_ROOT "{root}")
set(CMAKE_CUDA_COMPILER_PRODUCED_OUTPUT [==[#$ PATH=/usr/bin
#$ LIBRARIES=  "-L{root}/lib64"
#$ INCLUDES="-I{root}/include"
#$ g++ -o "a.out" "a.o" "-L{root}/lib64" -lcudart
]==])
"""
"""Facts about nvcc that CMake would otherwise learn by compiling."""
_TORCH_LIBRARIES = ("torch", "torch_cpu", "torch_cuda", "torch_python", "c10", "c10_cuda")
_CUDA_LIBRARIES = """
cudart cudart_static cudadevrt cublas cublasLt cufft curand cusolver cusparse nvrtc nvrtc_builtins nvJitLink nvjitlink
nvml cupti nppc nvjpeg cufile nccl cudnn
"""
_GIVEN = ("<cuda>", "<torch>", "<python>", "<headers>", "<build>")
"""Include folders that every project has."""


def compile_commands(
    kernel: Kernel, backend: Backend, setting: Setting, scratch: Path, *, environ: Mapping[str, str]
) -> tuple[tuple[Command, ...], dict[str, str]]:
    """Return the compile lines of a kernel's project, and names for the folders in them.

    Raises:
        ToolError: CMake cannot configure it.
    """
    project, build, toolkit, torch = (scratch / name for name in ("project", "build", "cuda", "torch"))
    for folder in (project, build):
        shutil.rmtree(folder, ignore_errors=True)
    make_machine(setting, scratch, scratch, pretended=(), believed=())
    render(kernel, backend, allow_unsafe_flags=True).write(project)
    text = f"__version__ = '{setting.torch}'\ncuda: Optional[str] = {setting.cuda!r}\n"
    write_text(torch / "version.py", text)
    for name in _TORCH_LIBRARIES:
        write_text(torch / f"lib/lib{name}.so", "")
    settings = {
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "CMAKE_MAKE_PROGRAM": str(_tool("ninja", environ)),
        "KERNEL_TORCH_DIR": str(torch),
        "Python_EXECUTABLE": sys.executable,
        **_python(scratch),
        **_headers(kernel, backend, scratch),
        **(_toolkit(toolkit, setting.cuda) if setting.cuda is not None and backend is Backend.CUDA else {}),
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    done = run([_tool("cmake", environ), "-G", "Ninja", "-S", project, "-B", build, *options], env=dict(environ))
    if done.returncode != 0:
        raise ToolError(
            f"CMake cannot configure the project of '{kernel.config.general.name}'\n{done.output[-2000:]}",
            help=f"look at the project: builder render --backend {backend} --output PROJECT",
        )
    roots = {
        str(project): "",
        str(project / "cmake"): "<cmake>",
        str(build): "<build>",
        str(toolkit): "<cuda>",
        str(torch): "<torch>",
        str(scratch / "headers"): "<headers>",
        str(scratch / "python"): "<python>",
        sysconfig.get_path("include"): "<python>",
        **{str(scratch / "foreign" / name): name for name in kernel.config.sources},
    }
    return read_commands(build / "compile_commands.json"), roots


def _tool(name: str, environ: Mapping[str, str]) -> Path:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name, path=environ.get("PATH"))
    if found is None:
        raise ToolError(f"there is no {name}", help=f"install it beside builder: pip install {name}")
    return Path(found)


def _toolkit(folder: Path, version: str) -> dict[str, str]:
    write_text(folder / "include/cuda_runtime.h", "")
    for name in _CUDA_LIBRARIES.split():
        write_text(folder / f"lib64/lib{name}.so", "")
    write_text(folder / "lib64/stubs/libcuda.so", "")
    write_text(folder / "compiler.cmake", _COMPILER.format(version=version, root=folder))
    return {
        "CMAKE_CUDA_COMPILER": str(folder / "bin/nvcc"),
        "CMAKE_PROJECT_INCLUDE_BEFORE": str(folder / "compiler.cmake"),
        "CUDAToolkit_ROOT": str(folder),
    }


def _python(scratch: Path) -> dict[str, str]:
    """Return the folders of Python's headers, or stand-ins if this Python has none."""
    if (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return {}
    version = ".".join(map(str, sys.version_info[:3]))
    write_text(scratch / "python/patchlevel.h", f'#define PY_VERSION "{version}"\n')
    for name in ("Python.h", "pyconfig.h"):
        write_text(scratch / "python" / name, "")
    return {"Python_INCLUDE_DIR": str(scratch / "python")}


def _headers(kernel: Kernel, backend: Backend, scratch: Path) -> dict[str, str]:
    """Return empty folders for header-only libraries and foreign sources, so that nothing is fetched."""
    found = {}
    for library in header_libraries(kernel.config, backend):
        folder = scratch / "headers" / str(library["NAME"])
        write_text(folder / str(library["CONTAINS"]), "")
        found[str(library["VARIABLE"])] = str(folder)
    listed = [entry for _, table in kernel.config.tables() for entry in table.src]
    for name in kernel.config.sources:
        folder = scratch / "foreign" / name
        folder.mkdir(parents=True, exist_ok=True)
        for entry in listed:
            if entry.startswith(f"{name}:"):
                write_text(folder / entry.partition(":")[2], "")
        found[f"FETCHCONTENT_SOURCE_DIR_{name.upper()}"] = str(folder)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The flags of one source that only one side has."""

    source: str
    missing: tuple[str, ...] = ()
    """Flags that only `setup.py` has."""
    extra: tuple[str, ...] = ()
    """Flags that only the config has."""


def in_groups(differences: Iterable[Difference]) -> Iterator[str]:
    """Yield a line for each difference, with the first source that has it."""
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
    """The number of sources that both compile in the same way."""
    differences: tuple[Difference, ...]
    refused: str | None = None
    """The words with which `setup.py` refuses the machine, which the config has no row for either."""


def verify(
    directory: Path,
    *,
    home: Path | None,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
    sandboxed: bool,
    seconds: float,
) -> Iterator[Comparison]:
    """Yield the comparison for each machine of the config: each CUDA toolkit of the matrix, and no toolkit.

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
        raise nothing_compiled(recording, directory)
    if all(run.failure is not None for run in recording.runs):
        raise BuilderError(f"setup.py cannot be recorded with {seen[0].name}\n  {_refusal(recording.runs[0])}")
    built = _built(config)
    with tempfile.TemporaryDirectory(prefix="builder-port-") as scratch:
        kernel = _copy(directory, Path(scratch).resolve() / "kernel")
        for (backend, setting), run in zip(among, recording.runs, strict=True):
            is_built = (backend, setting.cuda) in built
            if run.failure is not None or not (is_built or run.extensions):
                wrong = (Difference(source="setup.py", extra=("a row for it",)),) if is_built else ()
                yield Comparison(setting=setting, sources=0, differences=wrong, refused=_refusal(run))
                continue
            if not is_built:
                wrong = (Difference(source="setup.py", missing=("a row for it",)),)
                yield Comparison(setting=setting, sources=0, differences=wrong)
                continue
            found, roots = compile_commands(kernel, backend, setting, Path(scratch).resolve(), environ=environ)
            yield _compared(run, recording, lines_of(found, roots), directory)


def _refusal(run: Run) -> str:
    """Return why a run compiles nothing, in the words of its project."""
    at = run.at or ("" if run.setup is None else run.setup.at)
    return f"{at}: {run.failure or 'it compiles nothing'}" if at else run.failure or "it compiles nothing"


def _built(config: Config) -> set[tuple[Backend, str | None]]:
    """Return the backends, and of CUDA the toolkits, for which a config gives wheels."""
    cells = select(config, rows(), unbundled=True)
    return {(cell.backend, cell.toolkit if cell.backend is Backend.CUDA else None) for cell in cells}


def machines(backends: Iterable[Backend]) -> Iterator[tuple[Backend, Setting]]:
    """Yield the machines for comparing a kernel, each with the backend to compare."""
    built = {row.toolkit for row in rows() if row.backend is Backend.CUDA}
    for setting in settings():
        if setting.is_main and setting.cuda in built and Backend.CUDA in backends:
            yield Backend.CUDA, setting
        elif setting.cuda is None and setting.hip is None and Backend.CPU in backends:
            yield Backend.CPU, setting


def uncompared(directory: Path) -> tuple[Backend, ...]:
    """Return the backends whose compile lines cannot be compared."""
    named = load(directory).config.general.backends
    compared = {backend for backend, _ in machines(named)}
    return tuple(backend for backend in dict.fromkeys(named) if backend not in compared)


def _copy(directory: Path, target: Path) -> Kernel:
    """Copy a kernel; a missing Python package becomes an empty one."""
    copy(directory, target)
    package = target / package_directory(load(target).config)
    if not package.is_dir():
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    return load(target)


def _compared(run: Run, recording: Recording, found: Mapping[str, list[Line]], root: Path) -> Comparison:
    # In the config, folders of submodules have the names of foreign sources.
    absent = {path: source_facts.source_name(path) for path in recording.absent}
    wanted: dict[str, list[Line]] = {}
    for lines in of_run(run).values():
        for source, line in lines.items():
            # A compiler passes over folders that are not there.
            there = (each for each in line.include if not is_missing(each, recording, root))
            include = tuple(relative(folder, absent) for folder in there)
            wanted.setdefault(source, []).append(replace(line, include=include))
    sources = sorted({*wanted, *found})
    differences = [difference(source, wanted.get(source, []), found.get(source, []), run.setting) for source in sources]
    own = tuple(each for each in differences if each is not None)
    return Comparison(setting=run.setting, sources=len(sources) - len(own), differences=own)


def is_missing(folder: str, recording: Recording, root: Path) -> bool:
    """Whether a folder is one of the project, and not there."""
    given = folder.startswith(("<", "/", "..")) or any(f"{folder}/".startswith(f"{name}/") for name in recording.absent)
    return not given and not source_facts.is_folder(root, folder)


def difference(source: str, wanted: list[Line], found: list[Line], setting: Setting) -> Difference | None:
    """Return the difference between the lines of one source, which may be compiled several times; None without one."""
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
        lost, more = architectures_of_one(line, nearest[0], setting)
        missing += [*sorted(own - nearest[1]), *lost]
        extra += [*sorted(nearest[1] - own), *more]
    extra += ["another compile of it"] * len(left)
    return Difference(source=source, missing=tuple(missing), extra=tuple(extra)) if missing or extra else None


def canonical(line: Line) -> frozenset[str]:
    """Return a line as comparable words, without the parts that every build has."""
    taken = flag_keys.taken_away(Backend.CUDA)
    found = {
        f"-D{name}" if value in {None, "1"} else f"-D{name}={value}"
        for name, value in line.flags.macros.items()
        if not is_rendered_macro(name)
    }
    found |= {f"-U{name}" for name in line.flags.undefined if name not in taken}
    folders = {folder for folder in map(normal, line.include) if not folder.startswith(_GIVEN)}
    found |= {f"-I{folder}" for folder in folders.difference(facts()["rendered"]["include"])}
    wanted = line.flags.standard
    if wanted is not None and not (wanted.isdigit() and int(wanted) <= standard()):
        found.add(f"-std=c++{wanted}")
    return frozenset(found | {" ".join(flag) for flag in line.flags.rest if not is_rendered(flag)})


def architectures_of_one(wanted: Line, found: Line, setting: Setting) -> tuple[list[str], list[str]]:
    """Return the architectures that only one of two lines has; if `setup.py` names none, the machine decides."""
    if wanted.language != GPU or setting.cuda is None or not wanted.flags.capabilities:
        return [], []
    compiled = found.flags.capabilities
    missing = [
        name
        for name in flag_keys.known(wanted.flags.capabilities, setting.cuda)
        if name not in compiled and f"{name}+PTX" not in compiled and not flag_keys.covered(name, compiled)
    ]
    plain = {name.removesuffix("+PTX") for name in wanted.flags.capabilities}
    extra = [name for name in compiled if name.removesuffix("+PTX") not in plain]
    return [f"architecture {name}" for name in missing], [f"architecture {name}" for name in extra]
