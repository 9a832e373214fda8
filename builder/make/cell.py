"""Build one cell: turn a rendered project into a finished, audited wheel. Both engines call this module."""

import contextlib
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from builder import audit, json_text
from builder.config import Backend
from builder.errors import AuditError, ToolError
from builder.kernel import source_set
from builder.make import compiler_output, load, ninja_log, objects, part, repeated_code, reproducible, source_trees
from builder.make.build_report import BuildReport, Built
from builder.make.job import Job
from builder.make.part import BuildPart, SourceFile
from builder.make.workplace import Workplace
from builder.matrix import extensions_of
from builder.metadata import RebuildInputs
from builder.wheel import finish
from builder.wheel.archive import Wheel
from builder.wheel.finish import FinishedWheel

_PLAN = "kernel-plan.json"
"""The file with CMake's decisions about architectures and components."""
OUT = "out"
"""The folder of a private directory for the finished wheel, before its audit."""

# A PEP 517 frontend in one line: the environment has the backend, so pip is not needed.
_FRONTEND = """
import json, os, sys
from scikit_build_core.build import build_wheel
source, output, settings = sys.argv[1:]
os.chdir(source)  # the backend builds the project of the current directory
print("wheel:", build_wheel(output, json.loads(settings)))
"""


def build(place: Workplace, *, core: load.Core = contextlib.nullcontext) -> Built:
    """Compile, finish, audit and load one cell; if `core` has a free core, the load test starts during compilation.

    Raises:
        CompileError: the message begins with the compiler's first error.
        AuditError: the wheel breaks a rule.
        LoadError: the wheel does not load or registers nothing; an undeclared module is refused before compiling.
    """
    began, job = time.monotonic(), place.job
    _lay_out(place)
    load.check_imports(place)
    with load.early(place, core=core) as early:
        raw, report = _compile(place, began)
        compiled = time.monotonic()
        found = sorted((place.scratch / "build").rglob(_PLAN))
        plan = json_text.read(found[0]) if found else None
        finished = _finish(place, raw, plan)
        loaded = load.test(place, Wheel.read(place.scratch / OUT / finished.name), early=early)
    loaded.require(job.load_test)
    report = replace(
        report,
        load_test=loaded,
        not_reproducible=_why_not_reproducible(job),
        plan=plan,
        finish_seconds=round(time.monotonic() - compiled, 2),
    )
    made = {} if job.toolchain is None else objects.read(job, scratch=place.scratch, base=place.base)
    return Built(name=finished.name, content=finished.content, report=report, objects=made)


def compile_part(place: Workplace, wanted: BuildPart | SourceFile) -> tuple[BuildReport, int, int]:
    """Compile a part of a cell's objects into the shared cache.

    Returns:
        A report with the objects, the number of objects in the part, and the number of all objects.

    Raises:
        CompileError: the message begins with the compiler's first error.
    """
    began = time.monotonic()
    _lay_out(place)
    python = place.seen(place.job.frontend)
    report = _run(place, part.frontend(python, wanted, base=place.base, arguments=place.cmake_arguments()), began)
    return report, *part.counts(place.scratch)


def _compile(place: Workplace, began: float) -> tuple[Wheel, BuildReport]:
    settings = {
        "build-dir": str(place.base / "build"),
        "install.strip": "strip" not in place.job.options.without,
        "cmake.args": place.cmake_arguments(),
    }
    command = [str(place.seen(place.job.frontend)), "-c", _FRONTEND, str(place.base / "src"), str(place.base / "raw")]
    report = _run(place, [*command, json_text.line(settings)], began)
    wheels = sorted((place.scratch / "raw").glob("*.whl"))
    if len(wheels) != 1:
        raise ToolError(
            f"the build of {place.job.cell.variant} left {len(wheels)} wheels", help=f"read the log: {place.log}"
        )
    return Wheel.read(wheels[0]), report


def _run(place: Workplace, command: list[str], began: float) -> BuildReport:
    """Run a command that compiles, and return the report about it."""
    done = place.run(command)
    return BuildReport(
        canonical_path=place.job.canonical,
        sandbox=place.job.sandboxed,
        peak_memory=done.peak,
        compile_seconds=round(time.monotonic() - began, 2),
        files=ninja_log.read(place.scratch / "build"),
        warnings=compiler_output.warnings(done.output.splitlines(), place.known_paths),
    )


def _finish(place: Workplace, raw: Wheel, plan: Mapping[str, Any] | None) -> FinishedWheel:
    """Finish a wheel, and audit the file.

    Raises:
        AuditError: the wheel breaks a rule.
    """
    place.listen("finishing the wheel")
    job, shared = place.job, tuple[str, ...]()
    if job.cell.backend is Backend.CUDA:
        raw, shared = repeated_code.left_out(raw)
    readme, archs = source_set.readme(job.kernel.config), finish.archs_of(plan)
    facts = finish.BuildFacts(
        framework_version=job.framework.version,
        inputs=RebuildInputs(
            project=job.project.digest,
            framework=job.framework.version,
            pins=job.spec.pins,
            toolchain={} if job.toolchain is None else job.toolchain.identity,
            not_reproducible=_why_not_reproducible(job),
        ),
        archs=archs,
        options=job.options,
        description="" if readme is None else job.project[readme],
        fixed="fixed-zip" not in job.options.without,
        shared_code=shared,
    )
    finished = finish.finish(raw, kernel=job.kernel, cell=job.cell, facts=facts)
    path = place.scratch / OUT / finished.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(finished.content)
    place.listen("auditing")
    extensions = frozenset(extensions_of(job.kernel.config, job.cell, job.options.only))
    promise = audit.AuditPromise(variant=job.cell.name, archs=archs, extensions=extensions)
    report = audit.run(Wheel.read(path), plan=promise)
    if not report.ok:
        raise AuditError(f"{path.name} breaks rules\n{report.to_text()}")
    return finished


def _why_not_reproducible(job: Job) -> str | None:
    cuda = None if job.toolchain is None or job.toolchain.cuda is None else job.toolchain.cuda.version
    # If Nix's sandbox cannot mount anything, the path itself is used.
    return reproducible.why_not_reproducible(
        cuda=cuda,
        canonical=job.canonical or job.at_canonical_path,
        rewrites_module_id="module-id" not in job.options.without,
    )


def _lay_out(place: Workplace) -> None:
    """Make the directories of a build; if a build was stopped there, its sources and compiled files stay."""
    job, scratch = place.job, place.scratch
    for name in ("raw", "home", "tmp", OUT, "installed", "src.new"):
        shutil.rmtree(scratch / name, ignore_errors=True)
    for name in ("build", "raw", "home", "tmp", "env"):
        (scratch / name).mkdir(exist_ok=True)
    if not (scratch / "src").is_dir():
        job.project.write(scratch / "src.new")
        (scratch / "src.new").rename(scratch / "src")
    source_trees.lay_out(job.spec.sources, scratch, mounted=job.sandboxed)
