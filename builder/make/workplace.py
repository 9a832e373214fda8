"""The directory in which a job is compiled: settings, variables, running the command, and explaining its failure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from builder import run, sandbox
from builder.config.values import Backend
from builder.make import advice, ccache, compiler_output, header_folders, ninja_log, reproducible, source_trees
from builder.make import sandbox_contents as contents
from builder.make.compiler_answers import CompilerAnswers, NoteKeeper
from builder.make.compiler_output import UNKNOWN, KnownPaths
from builder.make.job import CompileError, Job, OutOfMemoryError
from builder.render.external_sources import source_variable
from builder.toolchain import Toolchain, crosses, device_compilers
from builder.wheel.options import MANYLINUX

_COMPILER = r"\S*(?:g\+\+|gcc|c\+\+|cc|clang|clang\+\+|icpx?|icx|hipcc)(?:-[0-9.]+)?"
_OUT_OF_MEMORY = re.compile(
    rf"{_COMPILER}: (?:fatal error: Killed signal terminated program \S+|error: unable to execute command: Killed)"
    r"|collect2: (?:fatal )?error: ld terminated with signal 9 .*|nvcc error\s*: '\S+' died due to signal 9\b.*"
    r"|(?:\S*: )?out of memory allocating \d+ bytes.*|virtual memory exhausted: Cannot allocate memory"
    r"|terminate called after throwing an instance of 'std::bad_alloc'|LLVM ERROR: out of memory"
    r"|FAILED: \[code=137\].*"
)
"""The last words of tools when memory runs out: whole lines that name no source."""
_DIAGNOSTIC = re.compile(r".+(?::\d+|\(\d+\)): (?:fatal |catastrophic )?error:|collect2: error: ld returned")
_LINKING = re.compile(r"FAILED: (?:\[code=\d+\] )?\S+\.(?:so|dylib)(?: |$)")
"""ninja's message that a library could not be linked."""
_KILLED = (-9, 137)
_COUNTER = Path("/proc/vmstat")
_JOBSERVER_SINCE = Version("13.0")
"""The first nvcc that asks the jobserver for each additional architecture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """The private directory of a job, with the listener for its progress."""

    job: Job
    scratch: Path
    log: Path
    listen: Callable[[str], None]
    """Gets each step, and each line of the compilers."""
    processes: run.Processes | None = None
    notes: NoteKeeper | None = None
    """Keeps CMake's answers about the compilers."""

    @property
    def base(self) -> Path:
        """The scratch directory as the build sees it."""
        return sandbox.CANONICAL if self.job.canonical else self.scratch

    def seen(self, path: Path) -> Path:
        """Translate a path of this machine to the build: the environment is at `env` of the canonical path."""
        environment = self.job.environment
        if environment is None or self.base != sandbox.CANONICAL or not path.is_relative_to(environment):
            return path
        return self.base / "env" / path.relative_to(environment)

    def cmake_arguments(self) -> list[str]:
        """Return the arguments that give CMake its folders, rules and tools."""
        job, site_packages = self.job, self.seen(self.job.site_packages)
        defines = {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_PREFIX_PATH": str(site_packages),
            "KERNEL_TORCH_DIR": str(site_packages / "torch"),
            **reproducible.cmake_defines(job.options.without),
            **cross_defines(job, roots=(self.base, site_packages)),
        }
        if job.options.policy != MANYLINUX:
            defines["KERNEL_MANYLINUX"] = job.options.policy
        defines |= {name: str(self.seen(folder)) for name, folder in header_folders.of_job(job).items()}
        defines |= {source_variable(name): str(source_trees.place(self.base, name)) for name in job.spec.sources}
        if job.toolchain is not None and job.toolchain.cuda is not None:
            defines["KERNEL_NVCC_THREADS"] = str(nvcc_threads(job))
        if job.ccache is not None:
            defines |= ccache.defines(job.ccache)
        return ["-GNinja", *(f"-D{name}={value}" for name, value in sorted(defines.items()))]

    def variables(self) -> dict[str, str]:
        """Return all variables of the build; make the toolkit that they name, if it must be a modified one."""
        job, tools = self.job, self.job.toolchain
        ocloc = [] if tools is None or tools.ocloc is None else [tools.ocloc.parent]
        found = reproducible.variables(
            self.base,
            environ=job.environ,
            path=(self.seen(job.frontend.parent), *job.path, *ocloc),
            options=job.options,
        )
        found |= core_variables(job)
        found["NINJA_STATUS"] = "[%f/%t] "
        if tools is None:
            return found
        cuda = None if tools.cuda is None else tools.cuda.path.parent.parent
        if cuda is not None:
            # Away from the canonical path, a toolkit that names GPU kernels without paths.
            moved = self.base != sandbox.CANONICAL and "module-id" not in job.options.without
            cuda = reproducible.module_id_farm(cuda, self.base / "cuda", folder=self.base) if moved else self.seen(cuda)
        found |= tool_variables(tools, cuda_root=cuda)
        return found if job.ccache is None else found | ccache.variables(self.base)

    @property
    def known_paths(self) -> KnownPaths:
        """The user's names of the folders of the build."""
        job, base = self.job, self.base
        others = {str(source_trees.place(base, name)): str(tree) for name, tree in job.spec.sources.items()}
        if job.environment is not None:
            others[str(self.seen(job.environment))] = str(job.environment)
        root = None if job.in_nix_sandbox else job.kernel.root
        return KnownPaths(sources=base / "src", root=root, others=others)

    def run(self, command: list[str]) -> run.Completed:
        """Run a command that compiles, in the sandbox.

        Raises:
            CompileError: the command failed.
        """
        job, build, variables = self.job, self.scratch / "build", self.variables()
        answers = None
        if self.notes is not None:
            arguments = self.cmake_arguments()
            answers = CompilerAnswers.of(job, self.notes, build=build, variables=variables, arguments=arguments)
        if job.ccache is not None:
            include = [job.site_packages / "torch" / "include", *header_folders.of_job(job).values()]
            ccache.write(job, scratch=self.scratch, base=self.base, include=include)
        if job.sandboxed:
            visible = contents.of_build(job, scratch=self.scratch, base=self.base, variables=variables)
            command = sandbox.enclose(command, visible)
        elif job.canonical:
            command = sandbox.wrap(command, scratch=self.scratch, environment=job.environment)
        kills = oom_kills()

        def compiled() -> run.Completed:
            return run.run(command, env=variables, log=self.log, on_line=self.listen, processes=self.processes)

        done = compiled() if answers is None else answers.around(compiled)
        if done.returncode != 0:
            killed, paths = oom_kills() - kills, self.known_paths
            error = compile_error(job.cell.variant, done, self.log, kills=killed, toolkit=_cuda_of(job), paths=paths)
            error.files = ninja_log.read(build)
            raise error
        return done


def cross_defines(job: Job, *, roots: tuple[Path, ...]) -> dict[str, str]:
    """Return CMake's variables for a cross build, which no rendered project has; `roots` are the other system's."""
    if not crosses(job.cell):
        return {}
    return {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": job.cell.system.partition("-")[0],
        # Libraries in this machine's folders are for another processor; programs in the roots do not run here.
        "CMAKE_FIND_ROOT_PATH": ";".join(map(str, (*roots, *job.spec.headers.values()))),
        "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY": "ONLY",
        "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
    }


def core_variables(job: Job) -> dict[str, str]:
    """Return the variables that limit the parallel processes of ninja and nvcc."""
    if job.jobserver:
        # With a number, ninja would not ask the jobserver.
        return {**job.jobserver, **({"NVCC_APPEND_FLAGS": "--jobserver"} if _nvcc_shares(job) else {})}
    return {} if job.cores is None else {"CMAKE_BUILD_PARALLEL_LEVEL": str(job.cores)}


def nvcc_threads(job: Job) -> int:
    """Return how many architectures of a source nvcc may compile in parallel.

    If nvcc uses the jobserver, the number of cores, since each architecture takes a token; otherwise the cores that
    ninja would leave idle with one process for each source.
    """
    cores = job.cores or 1
    sources = sum(path.endswith(".cu") for path in job.project.files)
    return cores if _nvcc_shares(job) else max(1, cores // max(1, sources))


def _nvcc_shares(job: Job) -> bool:
    cuda = None if job.toolchain is None else job.toolchain.cuda
    return bool(job.jobserver) and cuda is not None and Version(cuda.version) >= _JOBSERVER_SINCE


def tool_variables(toolchain: Toolchain, *, cuda_root: Path | None) -> dict[str, str]:
    """Return the variables that name the compilers, and the CUDA toolkit at `cuda_root`, its path in the build."""
    result = {"CC": str(toolchain.cc.path), "CXX": str(toolchain.cxx.path)}
    if cuda_root is not None:
        result |= {name: str(cuda_root) for name in ("CUDAToolkit_ROOT", "CUDA_HOME")}
        result |= {"CUDACXX": str(cuda_root / "bin/nvcc"), "CUDAHOSTCXX": str(toolchain.cxx.path)}
    if toolchain.hip is not None:
        result |= {"ROCM_PATH": str(toolchain.hip.path.parent.parent), **device_compilers.HIP_PLATFORM}
    return result


def oom_kills() -> int:
    """Return the number of processes that Linux has killed for lack of memory; 0 if it does not tell."""
    try:
        lines = _COUNTER.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _cuda_of(job: Job) -> str | None:
    return job.cell.toolkit if job.cell.backend is Backend.CUDA else None


def compile_error(
    variant: str,
    done: run.Completed,
    log: Path,
    *,
    kills: int,
    toolkit: str | None = None,
    paths: KnownPaths = UNKNOWN,
) -> CompileError:
    """Return the error with the compilers' errors, and what to do about them where that is known.

    Args:
        variant: The name of the cell.
        done: The build.
        log: The file of its output.
        kills: `oom_kills` during the build.
        toolkit: The version of CUDA.
        paths: The user's names of the folders of the build.
    """
    lines = done.output.splitlines()
    memory = starved(lines, killed=done.returncode in _KILLED or kills > 0)
    if memory is not None:
        return OutOfMemoryError(
            f"{variant}: memory ran out while compiling\n{memory}",
            help=f"give the build more memory, or fewer compilers at once with --jobs; the whole log: {log}",
        )
    first = next((number for number, line in enumerate(lines) if compiler_output.is_error(line)), None)
    shown, remedy = "\n".join(compiler_output.errors(lines, paths)), advice.of_torch(lines[first or 0 :])
    of_ptxas = None if first is not None else advice.of_ptxas(lines, toolkit)
    if of_ptxas is not None:
        shown, remedy = of_ptxas
    help_ = f"the whole log: {log}" if remedy is None else f"{remedy}; the whole log: {log}"
    error = CompileError(f"{variant}: the build failed\n{shown}", help=help_)
    error.linking = any(map(_LINKING.match, lines))
    return error


def starved(lines: Sequence[str], *, killed: bool) -> str | None:
    """Return the line that shows that memory ran out; None without one.

    Only the end of a process counts: a compiler that reports an error in a source was not killed, whatever it says.
    """
    if any(_DIAGNOSTIC.match(line) for line in lines):
        return None
    said = next((line for line in lines if _OUT_OF_MEMORY.fullmatch(line.strip())), None)
    return said or ("Linux killed a process because memory ran out" if killed else None)
