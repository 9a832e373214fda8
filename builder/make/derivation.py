"""Build one cell inside Nix's sandbox: read the spec that Nix wrote, and write a wheel and its record to `out`."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from builder import codec, json_text, kernel, render, sandbox, terminal, toolchain
from builder.config import Backend, LoadTestRule
from builder.errors import BuilderError
from builder.loadtest.packages import KernelFolder
from builder.make import kernel_lock
from builder.make.build_report import Built
from builder.make.cell import build
from builder.make.framework import identity_of
from builder.make.job import Job, PinnedPackages, Spec, with_load_test
from builder.make.record import record_of
from builder.make.workplace import Workplace
from builder.toolchain import cuda_wheels

RECORD = "record.json"
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders that every build has on its PATH."""
_SANDBOX = Path("/build")
"""The build folder in Nix's sandbox; without a sandbox it differs."""
_VARIABLES = ("CC", "CXX", "CUDA_HOME", "ROCM_PATH", "ONEAPI_ROOT")
"""Variables in which a package set can name its compilers and toolkits."""


def main(environ: Mapping[str, str], action: Callable[[Mapping[str, str]], None] | None = None) -> int:
    """Build the cell in the variable `spec`, or run another action; report a failure, and return the exit code."""
    try:
        (action or _build)(environ)
    except BuilderError as error:
        terminal.err(f"error: {error}")
        return error.exit_code
    return 0


def _build(environ: Mapping[str, str]) -> None:
    place = enclosed(Spec.from_json(environ["spec"]), environ)
    write(place.job, build(place), Path(environ["out"]))


def write(job: Job, built: Built, out: Path) -> None:
    """Write a wheel and its record to the output of the derivation."""
    out.mkdir()
    (out / built.name).write_bytes(built.content)
    record, report = codec.encode(record_of(job)), built.report.lasting()
    table = {"wheel": built.name, "record": record, "report": report, "sandbox": job.in_nix_sandbox}
    (out / RECORD).write_text(json_text.document(table, ordered=True), encoding="utf-8")


def enclosed(spec: Spec, environ: Mapping[str, str]) -> Workplace:
    """Return the place of a build in this sandbox, with a spec's job and its tools.

    Raises:
        BuilderError: the spec has no pinned wheels, or there is no folder to build in.
    """
    if not isinstance(spec.environment, PinnedPackages):
        raise BuilderError("Nix builds only against pinned wheels")
    scratch, here = _scratch(spec.environment.path), Path.cwd()
    sandboxed, at_canonical_path = here.is_relative_to(_SANDBOX), scratch == sandbox.CANONICAL
    job = job_of(spec, environ, sandboxed=sandboxed, at_canonical_path=at_canonical_path)
    return Workplace(job=job, scratch=scratch, log=here / "log", listen=terminal.out)


def job_of(spec: Spec, environ: Mapping[str, str], *, sandboxed: bool, at_canonical_path: bool) -> Job:
    """Return the job of a spec, with the tools that the derivation's variables name.

    `sandboxed` means inside Nix's sandbox; `at_canonical_path` means that the scratch directory itself is there, since
    nothing can be mounted.
    """
    cell, options = spec.cell, spec.options
    loaded = kernel.load(spec.kernel)
    site_packages = spec.environment.site_packages
    variables = {"PATH": environ["PATH"]}
    variables |= {name: environ[name] for name in _VARIABLES if name in environ}
    root = cuda_wheels.cuda_root(site_packages) if cell.backend is Backend.CUDA else None
    path = (Path(folder) for folder in environ["PATH"].split(os.pathsep) if folder not in _SYSTEM)
    job = Job(
        spec=spec,
        kernel=loaded,
        project=render.render(
            loaded,
            cell.backend,
            unique_id=options.unique_id,
            allow_unsafe_flags=options.allow_unsafe_flags,
            only=options.only,
        ),
        framework=identity_of(cell.framework, site_packages),
        toolchain=toolchain.of_cell(cell, environ=variables, root=root),
        environ=variables,
        enclosed=True,
        in_nix_sandbox=sandboxed,
        at_canonical_path=at_canonical_path,
        cores=int(environ.get("NIX_BUILD_CORES", "0")) or None,
        path=tuple(path),
    )
    return with_load_test(job, locked=_locked(job))


def _locked(job: Job) -> tuple[KernelFolder, ...]:
    """Return the locked kernels for the load test; on an error, go on without them if the load test may fail."""
    rule, trees = job.load_test, job.spec.kernels
    if trees is None or rule is LoadTestRule.SKIP:
        return ()
    try:
        return kernel_lock.folders(job.kernel, job.cell, lambda wanted: kernel_lock.of(wanted, trees))
    except BuilderError as error:
        if rule is not LoadTestRule.TRY:
            raise
        terminal.out(error.message.splitlines()[0])
        return ()


def _scratch(environment: Path) -> Path:
    """Return the directory to build in: a mount at the canonical path, or the path itself."""
    if sandbox.can_mount():
        path = Path.cwd() / "scratch"
        path.mkdir()
        return path
    # Nothing can be mounted in this sandbox, but the path is free: build at the path itself.
    if sandbox.CANONICAL.exists() and any(sandbox.CANONICAL.iterdir()):
        raise BuilderError(
            f"'{sandbox.CANONICAL}' is not empty, and this build can mount nothing on it",
            help="build in Nix's sandbox (sandbox = true), or allow user namespaces",
        )
    sandbox.CANONICAL.mkdir(exist_ok=True)
    # A copy and not a link: compilers that follow links to themselves must not see another path.
    shutil.copytree(environment, sandbox.CANONICAL / "env", symlinks=True)
    return sandbox.CANONICAL
