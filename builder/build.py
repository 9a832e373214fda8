"""Build one cell: a rendered project becomes a finished, audited wheel. Both engines call this."""

import contextlib
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from builder import audit, cudafe, headers, loadtest, ninja_log, parallel, reproducible, run, sandbox, standin
from builder.config import Backend, Framework, LoadTestRule
from builder.errors import AuditError, ToolError
from builder.job import MANYLINUX, Built, CompileError, Job, OutOfMemoryError
from builder.kernel.source_set import package_directory
from builder.loadtest.imports import imported
from builder.render.project import Project
from builder.sandbox import contents
from builder.wheel import finish
from builder.wheel.archive import Wheel, unpack

_PLAN = "kernel-plan.json"

# A PEP 517 frontend in one line: the environment has the backend, and nothing needs pip.
_FRONTEND = """
import json, os, sys
from scikit_build_core.build import build_wheel
source, output, settings = sys.argv[1:]
os.chdir(source)  # the backend builds the project of the current directory
print("wheel:", build_wheel(output, json.loads(settings)))
"""


Listener = Callable[[str], None]


def build(job: Job, *, scratch: Path, log: Path, listen: Listener, processes: run.Processes | None = None) -> Built:
    """Compile, finish, audit and load one cell in the private directory `scratch`.

    Raises:
        CompileError: the compiler's own first error is on top of the message.
        AuditError: the wheel breaks a rule.
        LoadError: it does not load or registers nothing; where a module is not declared, before anything is compiled.
    """
    began = time.monotonic()
    _lay_out(job.project, scratch)
    _foresee(job, scratch, listen, processes)
    raw, peak = _compile(job, scratch=scratch, log=log, listen=listen, processes=processes)
    compiled = time.monotonic()
    listen("finishing the wheel")
    plan = _plan(scratch / "build")
    finished = finish.finish(raw, kernel=job.kernel, cell=job.cell, facts=_facts(job, plan))
    path = scratch / "out" / finished.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(finished.content)
    listen("auditing")
    wheel = Wheel.read(path)
    _audit(wheel, audit.Plan(variant=job.cell.name, archs=finish.archs_of(plan)))
    loaded = test(job, wheel, scratch=scratch, listen=listen, processes=processes)
    loaded.require(job.load_test)
    report = {
        "peak-memory": peak,
        "compile-seconds": round(compiled - began, 2),
        "finish-seconds": round(time.monotonic() - compiled, 2),
        "canonical-path": _canonical(job),
        "sandbox": _sealed(job),
        "not-reproducible": _shortcoming(job),
        "files": ninja_log.read(scratch / "build"),
        "ops": None if loaded.by_choice else {name: list(keys) for name, keys in loaded.ops.items()},
        "load-test": loaded.to_json(),
        "plan": plan,
    }
    return Built(name=finished.name, content=finished.content, report=report)


def _compile(
    job: Job, *, scratch: Path, log: Path, listen: Listener, processes: run.Processes | None
) -> tuple[Wheel, int]:
    canonical = _canonical(job)
    seen = _Seen(job=job, base=sandbox.CANONICAL if canonical else scratch)
    settings = json.dumps(_settings(seen))
    command = [str(seen.path(job.frontend)), "-c", _FRONTEND, str(seen.base / "src"), str(seen.base / "raw"), settings]
    variables = _variables(seen)
    if _sealed(job):
        _make_cache(variables)
        room = contents.of_build(job, scratch=scratch, canonical=canonical, variables=variables)
        command = sandbox.enclose(command, room)
    elif canonical:
        command = sandbox.wrap(command, scratch=scratch, environment=job.environment)
    kills = oom_kills()
    done = run.run(command, env=variables, log=log, on_line=listen, processes=processes)
    if done.returncode != 0:
        raise _failure(job, done, log, kills=oom_kills() - kills)
    wheels = sorted((scratch / "raw").glob("*.whl"))
    if len(wheels) != 1:
        raise ToolError(f"the build of {job.cell.variant} left {len(wheels)} wheels", help=f"read the log: {log}")
    return Wheel.read(wheels[0]), done.peak


def _facts(job: Job, plan: Mapping[str, Any] | None) -> finish.Facts:
    toolchain = {} if job.toolchain is None else job.toolchain.identity
    return finish.Facts(
        framework_version=job.framework_version,
        build=reproducible.inputs(
            project=job.project.digest,
            framework=job.framework_version,
            pins=job.pins,
            toolchain=toolchain,
            shortcoming=_shortcoming(job),
        ),
        archs=finish.archs_of(plan),
        version=job.wheel_version,
        label=job.label,
        policy=job.policy,
        epoch=job.epoch,
        fixed=job.experiment.has("fixed-zip"),
    )


def _make_cache(variables: Mapping[str, str]) -> None:
    """Make ccache's folder, which it could not make itself; one that cannot be made is ccache's to report."""
    if "CCACHE_DIR" in variables:
        with contextlib.suppress(OSError):
            Path(variables["CCACHE_DIR"]).mkdir(parents=True, exist_ok=True)


def _canonical(job: Job) -> bool:
    return job.experiment.has("canonical-path") and (_sealed(job) or sandbox.available())


def _sealed(job: Job) -> bool:
    """Whether the build and the load test are in a sandbox of this engine."""
    return not job.enclosed and job.experiment.has("sandbox") and sandbox.obstacle() is None


def _shortcoming(job: Job) -> str | None:
    cuda = None if job.toolchain is None or job.toolchain.cuda is None else job.toolchain.cuda.version
    # Nix's sandbox has the path itself where it can mount nothing.
    return reproducible.shortcoming(
        cuda=cuda,
        canonical=_canonical(job) or job.at_canonical_path,
        sealed=job.experiment.has("module-id"),
    )


def _lay_out(project: Project, scratch: Path) -> None:
    """Make the directories of a build; in one that was stopped, sources and compiled files stay as they are."""
    for name in ("raw", "home", "tmp", "out", "installed", "src.new"):
        shutil.rmtree(scratch / name, ignore_errors=True)
    for name in ("build", "raw", "home", "tmp", "env"):
        (scratch / name).mkdir(exist_ok=True)
    if not (scratch / "src").is_dir():
        project.write(scratch / "src.new")
        (scratch / "src.new").rename(scratch / "src")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Paths as the build sees them: the scratch directory at `base`, the environment at its `env`."""

    job: Job
    base: Path

    def path(self, path: Path) -> Path:
        """Return where the build sees a path of this machine."""
        environment = self.job.environment
        if environment is None or self.base != sandbox.CANONICAL or not path.is_relative_to(environment):
            return path
        return self.base / "env" / path.relative_to(environment)


def _settings(seen: _Seen) -> dict[str, Any]:
    """Return scikit-build-core's settings: where to build, and with which tools."""
    site_packages = seen.path(seen.job.site_packages)
    defines = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_PREFIX_PATH": str(site_packages),
        "KERNEL_TORCH_DIR": str(site_packages / "torch"),
        **reproducible.cmake_defines(seen.job.experiment),
    }
    job, toolchain = seen.job, seen.job.toolchain
    found = headers.folders(job.kernel.config, job.cell.backend, environ=job.environ, site_packages=job.site_packages)
    found |= job.headers
    if job.policy != MANYLINUX:
        defines["KERNEL_MANYLINUX"] = job.policy
    defines.update((name, str(seen.path(folder))) for name, folder in found.items())
    if toolchain is not None and toolchain.cuda is not None:
        defines["KERNEL_NVCC_THREADS"] = str(parallel.nvcc_threads(job))
    if toolchain is not None and toolchain.ccache is not None:
        languages = ("C", "CXX", "CUDA", "HIP")
        defines.update((f"CMAKE_{language}_COMPILER_LAUNCHER", str(toolchain.ccache)) for language in languages)
    return {
        "build-dir": str(seen.base / "build"),
        "install.strip": seen.job.experiment.has("strip"),
        "cmake.args": ["-GNinja", *(f"-D{name}={value}" for name, value in sorted(defines.items()))],
    }


def _variables(seen: _Seen) -> dict[str, str]:
    job, toolchain = seen.job, seen.job.toolchain
    ocloc = None if toolchain is None else toolchain.ocloc
    result = reproducible.variables(
        seen.base,
        environ=job.environ,
        path=(seen.path(job.frontend.parent), *job.path, *([] if ocloc is None else [ocloc.parent])),
        epoch=job.epoch,
        experiment=job.experiment,
    )
    result |= parallel.variables(job)
    result["NINJA_STATUS"] = "[%f/%t] "
    if toolchain is None:
        return result
    result |= {"CC": str(toolchain.cc.path), "CXX": str(toolchain.cxx.path)}
    if toolchain.cuda is not None:
        root = _toolkit(seen, toolchain.cuda.path.parent.parent)
        result |= {"CUDACXX": str(root / "bin/nvcc"), "CUDAToolkit_ROOT": str(root), "CUDA_HOME": str(root)}
        result["CUDAHOSTCXX"] = str(toolchain.cxx.path)
    if toolchain.hip is not None:
        result["ROCM_PATH"] = str(toolchain.hip.path.parent.parent)
    if toolchain.ccache is not None and "CCACHE_DIR" not in result:
        home = job.environ.get("XDG_CACHE_HOME") or str(Path(job.environ.get("HOME", "/")) / ".cache")
        result["CCACHE_DIR"] = str(Path(home) / "ccache")
    return result


def _toolkit(seen: _Seen, root: Path) -> Path:
    """Return the CUDA toolkit to build with: away from the canonical path, one that names kernels without paths."""
    if seen.base == sandbox.CANONICAL or not seen.job.experiment.has("module-id"):
        return seen.path(root)
    return cudafe.farm(root, seen.base / "cuda", folder=seen.base)


_COMPILER = r"\S*(?:g\+\+|gcc|c\+\+|cc|clang|clang\+\+|icpx?|icx|hipcc)(?:-[0-9.]+)?"
_OUT_OF_MEMORY = re.compile(
    rf"{_COMPILER}: (?:fatal error: Killed signal terminated program \S+|error: unable to execute command: Killed)"
    r"|collect2: (?:fatal )?error: ld terminated with signal 9 .*|nvcc error\s*: '\S+' died due to signal 9\b.*"
    r"|(?:\S*: )?out of memory allocating \d+ bytes.*|virtual memory exhausted: Cannot allocate memory"
    r"|terminate called after throwing an instance of 'std::bad_alloc'|LLVM ERROR: out of memory"
    r"|FAILED: \[code=137\].*"
)
"""How tools end when memory runs out: whole lines, in which no source is named."""
_DIAGNOSTIC = re.compile(r".+(?::\d+|\(\d+\)): (?:fatal |catastrophic )?error:|collect2: error: ld returned")
_KILLED = (-9, 137)
_COUNTER = Path("/proc/vmstat")


def oom_kills() -> int:
    """Return how many processes the kernel has killed for memory so far; 0 where it does not say."""
    try:
        lines = _COUNTER.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _failure(job: Job, done: run.Completed, log: Path, *, kills: int) -> CompileError:
    """Return the error with the compiler's own first error on top; `kills` are those of the kernel meanwhile."""
    lines = done.output.splitlines()
    starved = _starved(lines, killed=done.returncode in _KILLED or kills > 0)
    if starved is not None:
        return OutOfMemoryError(
            f"{job.cell.variant}: memory ran out while compiling\n{starved}",
            help=f"give the build more memory, or fewer compilers at once with --jobs; the whole log: {log}",
        )
    start = next((i for i, line in enumerate(lines) if _is_error(line)), max(0, len(lines) - 20))
    shown = "\n".join(lines[start : start + 20])
    return CompileError(f"{job.cell.variant}: the build failed\n{shown}", help=f"the whole log: {log}")


def _starved(lines: Sequence[str], *, killed: bool) -> str | None:
    """Return what says that memory ran out, by how a process ended; what a kernel's code makes a compiler say is none.

    A compiler that finds fault with a source has ended by itself, whatever words are in its message.
    """
    if any(_DIAGNOSTIC.match(line) for line in lines):
        return None
    said = next((line for line in lines if _OUT_OF_MEMORY.fullmatch(line.strip())), None)
    return said or ("the kernel killed a process for its memory" if killed else None)


def _is_error(line: str) -> bool:
    return ": error:" in line or ": fatal error:" in line or line.startswith(("CMake Error", "nvcc fatal"))


def _plan(build: Path) -> dict[str, Any] | None:
    """Return what CMake decided about architectures and components, where it did."""
    found = sorted(build.rglob(_PLAN))
    plan: dict[str, Any] | None = json.loads(found[0].read_text(encoding="utf-8")) if found else None
    return plan


def _audit(wheel: Wheel, plan: audit.Plan) -> None:
    report = audit.run(wheel, plan=plan)
    if not report.ok:
        raise AuditError(f"{wheel.path.name} breaks rules\n{report.to_text()}")


def test(
    job: Job, wheel: Wheel, *, scratch: Path, listen: Listener, processes: run.Processes | None
) -> loadtest.LoadTest:
    """Return what becomes of the load test of a finished wheel; nothing is refused here."""
    if job.load_test is LoadTestRule.SKIP:
        return loadtest.SKIPPED
    listen("loading")
    installed = scratch / "installed"
    installed.mkdir()
    unpack(wheel, installed)
    package = installed / job.kernel.config.general.name.module
    ops = json.loads((package / "metadata.json").read_text(encoding="utf-8"))["id"]
    libraries = _stand_ins(job, package, scratch / "stand-ins")
    return loadtest.load(
        package,
        ops=ops,
        cell=job.cell,
        python=job.test_python,
        libraries=libraries,
        bytecode=job.keeps_bytecode,
        beside=_beside(job, scratch / "beside"),
        room=_room(job),
        processes=processes,
    )


def _room(job: Job) -> sandbox.Room | None:
    """Return what a load test sees; None where it has no sandbox.

    There it cannot write into the environment, so the bytecode of the framework is made before, by nobody's kernel.
    """
    if not _sealed(job):
        return None
    name = "tvm_ffi" if job.cell.framework is Framework.TVM_FFI else "torch"
    if job.keeps_bytecode and not any((job.site_packages / name / "__pycache__").glob("*.pyc")):
        loadtest.keep_bytecode(name, python=job.test_python, room=contents.of_load_test(job, written=True))
    return contents.of_load_test(job)


def _foresee(job: Job, scratch: Path, listen: Listener, processes: run.Processes | None) -> None:
    """Refuse a kernel before it is compiled, where its package imports what its users will not have.

    Raises:
        LoadError: a module is neither here nor declared.
    """
    if job.load_test is not LoadTestRule.REQUIRE or not _strangers(job):
        return
    listen("importing the sources")
    folder = scratch / "sources"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / job.kernel.config.general.name.module
    for path, content in job.project.files.items():
        if PurePosixPath(path).is_relative_to(package_directory(job.kernel.config)):
            target = package / PurePosixPath(path).relative_to(package_directory(job.kernel.config))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    judged = loadtest.foresee(
        package,
        ops=f"_{package.name}",
        cell=job.cell,
        python=job.test_python,
        libraries=_stand_ins(job, package, scratch / "stand-ins"),
        bytecode=job.keeps_bytecode,
        beside=_beside(job, scratch / "beside"),
        room=_room(job),
        processes=processes,
    )
    if judged is not None:
        judged.require(job.load_test)


def _strangers(job: Job) -> tuple[str, ...]:
    """Return the modules that the package names and no folder of its load test seems to have."""
    package = job.kernel.config.general.name.module
    known = {package, "torch", *sys.stdlib_module_names, *job.beside.absent}
    folders = (job.site_packages, *job.beside.folders)
    known |= {path.name.partition(".")[0] for folder in folders for path in folder.iterdir()}
    files = {path: text for path, text in job.project.files.items() if path.endswith(".py")}
    own = (text for path, text in files.items() if path.startswith(f"{package_directory(job.kernel.config)}/"))
    return tuple(sorted({name for text in own for name in imported(text)} - known))


def _beside(job: Job, folder: Path) -> loadtest.Beside:
    """Unpack the kernels that this one depends on, and return what the load test finds beside the framework."""
    if not job.beside.kernels:
        return job.beside
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in job.beside.kernels:
        unpack(Wheel.read(path), folder)
    return replace(job.beside, folders=(*job.beside.folders, folder))


def _stand_ins(job: Job, package: Path, folder: Path) -> tuple[Path, ...]:
    """Return where the loader finds GPU libraries that this machine has not: they are only named, never called."""
    if job.toolchain is None or job.cell.backend is Backend.CPU:
        return ()
    cuda = job.toolchain.cuda
    search = [job.site_packages / "torch/lib", *sorted(job.site_packages.glob("nvidia/*/lib"))]
    search += [] if cuda is None else [cuda.path.parent.parent / "lib64"]
    # Python loads torch's own module before the kernel's, and that needs libraries which the kernel's does not.
    libraries = [*sorted((job.site_packages / "torch").glob("_C.*.so")), *sorted(package.rglob("*.so"))]
    wanted = standin.missing(libraries, search=tuple(search))
    standin.make(wanted, folder, cc=job.toolchain.cc.path)
    return (folder, *search)
