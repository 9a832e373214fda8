"""Build one cell: a rendered project becomes a finished, audited wheel. Both engines call this."""

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builder import audit, json_text, run, sandbox
from builder.config import Backend
from builder.errors import AuditError, ToolError
from builder.kernel import source_set
from builder.make import (
    ccache,
    failure,
    header_folders,
    load,
    ninja_log,
    objects,
    part,
    repeated_code,
    reproducible,
    source_trees,
    variables,
)
from builder.make import sandbox_contents as contents
from builder.make.compiler_answers import CompilerAnswers, Notes
from builder.make.job import Job
from builder.make.part import Part, SourceFile
from builder.make.report import BuildReport, Built
from builder.matrix import extensions_of
from builder.metadata import RebuildInputs
from builder.render.sources import source_variable
from builder.toolchain import crosses
from builder.wheel import finish
from builder.wheel.archive import Wheel
from builder.wheel.options import MANYLINUX

_PLAN = "kernel-plan.json"
OUT = "out"
"""The folder of a private directory that has the finished wheel, before it is audited."""

# A PEP 517 frontend in one line: the environment has the backend, and nothing needs pip.
_FRONTEND = """
import json, os, sys
from scikit_build_core.build import build_wheel
source, output, settings = sys.argv[1:]
os.chdir(source)  # the backend builds the project of the current directory
print("wheel:", build_wheel(output, json.loads(settings)))
"""


Listener = Callable[[str], None]


def build(
    job: Job,
    *,
    scratch: Path,
    log: Path,
    listen: Listener,
    processes: run.Processes | None = None,
    core: load.Core = contextlib.nullcontext,
    notes: Notes | None = None,
) -> Built:
    """Compile, finish, audit and load one cell in the private directory `scratch`.

    Where `core` has one, the load test begins while the compilers run; `notes` keep what CMake finds out about these.

    Raises:
        CompileError: the compiler's own first error is on top of the message.
        AuditError: the wheel breaks a rule.
        LoadError: it does not load or registers nothing; an undeclared module is refused before anything is compiled.
    """
    began = time.monotonic()
    _lay_out(job, scratch)
    load.check_imports(job, scratch, listen, processes)
    with load.early(job, scratch=scratch, core=core, processes=processes) as early:
        raw, peak = _compile(job, scratch=scratch, log=log, listen=listen, processes=processes, notes=notes)
        compiled = time.monotonic()
        plan = _plan(scratch / "build")
        name, content = _finish(job, raw, plan=plan, scratch=scratch, listen=listen)
        wheel = Wheel.read(scratch / OUT / name)
        loaded = load.test(job, wheel, scratch=scratch, listen=listen, processes=processes, early=early)
    loaded.require(job.load_test)
    report = BuildReport(
        load_test=loaded,
        not_reproducible=_why_not_reproducible(job),
        plan=plan,
        canonical_path=contents.canonical(job),
        sandbox=contents.sandboxed(job),
        peak_memory=peak,
        compile_seconds=round(compiled - began, 2),
        finish_seconds=round(time.monotonic() - compiled, 2),
        files=tuple(ninja_log.read(scratch / "build")),
    )
    made = {} if job.toolchain is None else objects.read(job, scratch=scratch, base=_base(job, scratch))
    return Built(name=name, content=content, report=report, objects=made)


def _finish(
    job: Job, raw: Wheel, *, plan: Mapping[str, Any] | None, scratch: Path, listen: Listener
) -> tuple[str, bytes]:
    """Return the name and the content of the finished wheel, which the audit has read from where it lies.

    Raises:
        AuditError: it breaks a rule.
    """
    listen("finishing the wheel")
    shared: tuple[str, ...] = ()
    if job.cell.backend is Backend.CUDA:
        raw, shared = repeated_code.left_out(raw)
    finished = finish.finish(
        raw, kernel=job.kernel, cell=job.cell, facts=replace(_facts(job, plan), shared_code=shared)
    )
    path = scratch / OUT / finished.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(finished.content)
    listen("auditing")
    extensions = frozenset(extensions_of(job.kernel.config, job.cell, job.options.only))
    promise = audit.AuditPromise(variant=job.cell.name, archs=finish.archs_of(plan), extensions=extensions)
    _audit(Wheel.read(path), promise)
    return finished.name, finished.content


def compile_part(
    job: Job,
    wanted: Part | SourceFile,
    *,
    scratch: Path,
    log: Path,
    listen: Listener,
    processes: run.Processes | None = None,
    notes: Notes | None = None,
) -> tuple[BuildReport, int, int]:
    """Compile a part of the objects of a cell in the private directory `scratch`, for those who have the same cache.

    Returns:
        A report with the objects, how many were of the part, and how many there are.

    Raises:
        CompileError: the compiler's own first error is on top of the message.
    """
    began = time.monotonic()
    _lay_out(job, scratch)
    base = _base(job, scratch)
    settings = _settings(_BuildPaths(job=job, base=base))
    python = _BuildPaths(job=job, base=base).path(job.frontend)
    command = part.frontend(python, wanted, base=base, arguments=settings["cmake.args"])
    peak = _run(job, command, scratch=scratch, log=log, listen=listen, processes=processes, notes=notes)
    mine, of = part.counts(scratch)
    report = BuildReport(
        canonical_path=contents.canonical(job),
        sandbox=contents.sandboxed(job),
        peak_memory=peak,
        compile_seconds=round(time.monotonic() - began, 2),
        files=tuple(ninja_log.read(scratch / "build")),
    )
    return report, mine, of


def _compile(
    job: Job,
    *,
    scratch: Path,
    log: Path,
    listen: Listener,
    processes: run.Processes | None,
    notes: Notes | None,
) -> tuple[Wheel, int]:
    paths = _BuildPaths(job=job, base=_base(job, scratch))
    command = [
        str(paths.path(job.frontend)),
        "-c",
        _FRONTEND,
        str(paths.base / "src"),
        str(paths.base / "raw"),
        json_text.line(_settings(paths)),
    ]
    peak = _run(job, command, scratch=scratch, log=log, listen=listen, processes=processes, notes=notes)
    wheels = sorted((scratch / "raw").glob("*.whl"))
    if len(wheels) != 1:
        raise ToolError(f"the build of {job.cell.variant} left {len(wheels)} wheels", help=f"read the log: {log}")
    return Wheel.read(wheels[0]), peak


def _base(job: Job, scratch: Path) -> Path:
    """Return the scratch directory as the build sees it."""
    return sandbox.CANONICAL if contents.canonical(job) else scratch


def _run(
    job: Job,
    command: list[str],
    *,
    scratch: Path,
    log: Path,
    listen: Listener,
    processes: run.Processes | None,
    notes: Notes | None,
) -> int:
    """Run what compiles, where it sees nothing else, and return the memory of its largest process.

    Raises:
        CompileError: it failed.
    """
    canonical = contents.canonical(job)
    paths = _BuildPaths(job=job, base=_base(job, scratch))
    settings = _settings(paths)
    variables = _variables(paths)
    arguments, build = settings["cmake.args"], scratch / "build"
    answers = (
        None if notes is None else CompilerAnswers.of(job, notes, build=build, variables=variables, arguments=arguments)
    )
    if job.ccache is not None:
        ccache.write(job, scratch=scratch, base=paths.base, include=_include(job))
    if contents.sandboxed(job):
        visible = contents.of_build(job, scratch=scratch, canonical=canonical, variables=variables)
        command = sandbox.enclose(command, visible)
    elif canonical:
        command = sandbox.wrap(command, scratch=scratch, environment=job.environment)
    kills = failure.oom_kills()

    def compiled() -> run.Completed:
        return run.run(command, env=variables, log=log, on_line=listen, processes=processes)

    done = compiled() if answers is None else answers.around(compiled)
    if done.returncode != 0:
        error = failure.of_compile(job, done, log, kills=failure.oom_kills() - kills)
        error.files = tuple(ninja_log.read(build))
        raise error
    return done.peak


def _facts(job: Job, plan: Mapping[str, Any] | None) -> finish.BuildFacts:
    toolchain = {} if job.toolchain is None else job.toolchain.identity
    readme = source_set.readme(job.kernel.config)
    return finish.BuildFacts(
        framework_version=job.framework_version,
        inputs=RebuildInputs(
            project=job.project.digest,
            framework=job.framework_version,
            pins=job.pins,
            toolchain=toolchain,
            not_reproducible=_why_not_reproducible(job),
        ),
        archs=finish.archs_of(plan),
        options=job.options,
        description="" if readme is None else job.project[readme],
        fixed=job.rules.fixed_zip,
    )


def _why_not_reproducible(job: Job) -> str | None:
    cuda = None if job.toolchain is None or job.toolchain.cuda is None else job.toolchain.cuda.version
    # Nix's sandbox has the path itself where it can mount nothing.
    return reproducible.why_not_reproducible(
        cuda=cuda,
        canonical=contents.canonical(job) or job.at_canonical_path,
        rewrites_module_id=job.rules.module_id,
    )


def _lay_out(job: Job, scratch: Path) -> None:
    """Make the directories of a build; in one that was stopped, sources and compiled files stay as they are."""
    for name in ("raw", "home", "tmp", OUT, "installed", "src.new"):
        shutil.rmtree(scratch / name, ignore_errors=True)
    for name in ("build", "raw", "home", "tmp", "env"):
        (scratch / name).mkdir(exist_ok=True)
    if not (scratch / "src").is_dir():
        job.project.write(scratch / "src.new")
        (scratch / "src.new").rename(scratch / "src")
    source_trees.lay_out(job.sources, scratch, mounted=contents.sandboxed(job))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuildPaths:
    """Paths as the build sees them: the scratch directory at `base`, the environment at its `env`."""

    job: Job
    base: Path

    def path(self, path: Path) -> Path:
        """Return where the build sees a path of this machine."""
        environment = self.job.environment
        if environment is None or self.base != sandbox.CANONICAL or not path.is_relative_to(environment):
            return path
        return self.base / "env" / path.relative_to(environment)


def _settings(paths: _BuildPaths) -> dict[str, Any]:
    """Return scikit-build-core's settings: where to build, and with which tools."""
    site_packages = paths.path(paths.job.site_packages)
    defines = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_PREFIX_PATH": str(site_packages),
        "KERNEL_TORCH_DIR": str(site_packages / "torch"),
        **reproducible.cmake_defines(paths.job.rules),
        **cross_defines(paths.job, roots=(paths.base, site_packages)),
    }
    job, toolchain = paths.job, paths.job.toolchain
    found = _header_folders(job)
    if job.options.policy != MANYLINUX:
        defines["KERNEL_MANYLINUX"] = job.options.policy
    defines.update((name, str(paths.path(folder))) for name, folder in found.items())
    defines |= {source_variable(name): str(source_trees.place(paths.base, name)) for name in job.sources}
    if toolchain is not None and toolchain.cuda is not None:
        defines["KERNEL_NVCC_THREADS"] = str(variables.nvcc_threads(job))
    if job.ccache is not None:
        defines |= ccache.defines(job.ccache)
    return {
        "build-dir": str(paths.base / "build"),
        "install.strip": paths.job.rules.strip,
        "cmake.args": ["-GNinja", *(f"-D{name}={value}" for name, value in sorted(defines.items()))],
    }


def cross_defines(job: Job, *, roots: tuple[Path, ...]) -> dict[str, str]:
    """Return CMake's variables of a cross build, which no rendered project has; `roots` are of the other system."""
    if not crosses(job.cell):
        return {}
    return {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": job.cell.system.partition("-")[0],
        # Libraries of this machine's own folders are for another processor; programs in the roots do not run.
        "CMAKE_FIND_ROOT_PATH": ";".join(map(str, (*roots, *job.headers.values()))),
        "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY": "ONLY",
        "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
    }


def _header_folders(job: Job) -> dict[str, Path]:
    found = header_folders.folders(
        job.kernel.config, job.cell.backend, environ=job.environ, site_packages=job.site_packages
    )
    return found | dict(job.headers)


def _include(job: Job) -> list[Path]:
    """Return the folders of headers outside the project, as this machine has them."""
    return [job.site_packages / "torch" / "include", *_header_folders(job).values()]


def _variables(paths: _BuildPaths) -> dict[str, str]:
    job, toolchain = paths.job, paths.job.toolchain
    ocloc = None if toolchain is None else toolchain.ocloc
    result = reproducible.variables(
        paths.base,
        environ=job.environ,
        path=(paths.path(job.frontend.parent), *job.path, *([] if ocloc is None else [ocloc.parent])),
        epoch=job.options.epoch,
        rules=job.rules,
    )
    result |= variables.of_cores(job)
    result["NINJA_STATUS"] = "[%f/%t] "
    if toolchain is None:
        return result
    cuda = None if toolchain.cuda is None else _toolkit(paths, toolchain.cuda.path.parent.parent)
    result |= variables.of_tools(toolchain, cuda_root=cuda)
    if job.ccache is not None:
        result |= ccache.variables(paths.base)
    return result


def _toolkit(paths: _BuildPaths, root: Path) -> Path:
    """Return the CUDA toolkit to build with; away from the canonical path, one that names GPU kernels without paths."""
    if paths.base == sandbox.CANONICAL or not paths.job.rules.module_id:
        return paths.path(root)
    return reproducible.module_id_farm(root, paths.base / "cuda", folder=paths.base)


def _plan(build: Path) -> dict[str, Any] | None:
    """Return what CMake decided about architectures and components; None if it wrote nothing."""
    found = sorted(build.rglob(_PLAN))
    plan: dict[str, Any] | None = json_text.read(found[0]) if found else None
    return plan


def _audit(wheel: Wheel, plan: audit.AuditPromise) -> None:
    report = audit.run(wheel, plan=plan)
    if not report.ok:
        raise AuditError(f"{wheel.path.name} breaks rules\n{report.to_text()}")
