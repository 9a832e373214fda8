"""Make the job and the record of a build from its spec, for every engine; both have all that decides the bytes."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from builder import sandbox
from builder.config import LoadTestRule
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder, LoadTestPackages, found
from builder.make import crossing, header_folders, own_code, reproducible
from builder.make.framework import FrameworkIdentity, python_of_torch
from builder.make.job import BuildJob, NotLoadable
from builder.make.record import BuildRecord, file_digests, of_build_tools
from builder.make.reproducible import Rules
from builder.make.spec import BuildSpec, InstalledPackages, PinnedPackages
from builder.matrix.variant import dotted
from builder.render import source_scan
from builder.render.project import Project
from builder.toolchain import Toolchain
from builder.toolchain.emulator import Emulator
from builder.toolchain.tool import REACHES_BUILD
from builder.wheel import metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInputs:
    """All that decides the bytes of a wheel: the spec, and what was found for it."""

    spec: BuildSpec
    kernel: Kernel
    project: Project
    framework: FrameworkIdentity
    toolchain: Toolchain | None
    """None where nothing is compiled."""
    environ: Mapping[str, str]
    """The user's variables, of which few reach a build."""
    canonical: bool
    """Whether it is built at the canonical path."""
    sandboxed: bool
    """Whether a sandbox hides what the build key does not cover."""
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where and how a build runs; the bytes of its wheel do not depend on it."""

    cores: int | None
    """Most compilers at once; None leaves it to ninja."""
    kernels: Mapping[str, Path] = field(default_factory=dict)
    """Wheels of the kernels that this one depends on, by their repository, for its load test."""
    locked: tuple[KernelFolder, ...] = ()
    """Those of them that `kernels.lock` names."""
    keeps_bytecode: bool = False
    path: tuple[Path, ...] = ()
    """Folders of tools before those of the system."""
    enclosed: bool = False
    """Whether Nix runs it."""
    at_canonical_path: bool = False
    """Whether the scratch directory itself is at the canonical path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A build and the record of all that it is made of."""

    spec: BuildSpec
    job: BuildJob
    record: BuildRecord

    @property
    def environments(self) -> tuple[Path, ...]:
        """Paths of the pinned environments that it uses."""
        used = (self.spec.environment, self.spec.test_environment)
        return tuple(packages.path for packages in used if isinstance(packages, PinnedPackages))


def prepare(given: BuildInputs, run_options: RunOptions) -> Prepared:
    """Return the job of a build, and its record."""
    return Prepared(spec=given.spec, job=_job(given, run_options), record=record(given))


def record(given: BuildInputs) -> BuildRecord:
    """Return the record of a build, for which nothing has to be installed yet."""
    spec = given.spec
    wheel = spec.options.wheel
    requirements = metadata.requirements(given.kernel.config, spec.cell, given.framework.version)
    return BuildRecord(
        builder=own_code.identity(),
        variant=spec.cell.variant,
        wheel={
            "version": wheel.version or "",
            "label": str(wheel.label),
            "policy": wheel.policy,
            "requires": ", ".join(requirements),
            # A quick build is never taken for a full one, also where both compile the same.
            **({"archs": " ".join(wheel.only)} if wheel.only else {}),
        },
        project=file_digests(given.project.files),
        framework=asdict(given.framework),
        pins=spec.pins,
        toolchain={} if given.toolchain is None else given.toolchain.identity,
        environment=_environment(given),
    )


def load_test_rule(spec: BuildSpec, kernel: Kernel) -> LoadTestRule:
    """Return what to do with a wheel that cannot be imported: as asked for, or else as build.toml says."""
    return spec.options.load_test or kernel.config.load_test


def _environment(given: BuildInputs) -> dict[str, str]:
    spec, environ, without = given.spec, given.environ, given.rules.off
    result = {
        "SOURCE_DATE_EPOCH": str(spec.options.epoch),
        "place": str(sandbox.CANONICAL) if given.canonical and given.toolchain is not None else "",
        **({"without": " ".join(without)} if without else {}),
        # A wheel built without one may depend on what no key covers: it never stands in for one built in a sandbox.
        **({} if given.sandboxed else {"sandbox": "none"}),
    }
    reached = (*REACHES_BUILD, reproducible.SANDBOX_PATHS)
    result |= {name: environ[name] for name in reached if environ.get(name)}
    if isinstance(spec.environment, InstalledPackages):
        result |= of_build_tools()
        if source_scan.needed_by(given.project):
            result["python"] = python_of_torch(spec.environment.site_packages)
    return result | header_folders.digests(given.kernel.config, spec.cell.backend, environ=environ)


def _job(given: BuildInputs, run_options: RunOptions) -> BuildJob:
    spec = given.spec
    environment = spec.environment
    installed = isinstance(environment, InstalledPackages)
    loading = crossing.loading(spec, given.environ)
    emulator = loading if isinstance(loading, Emulator) else None
    return BuildJob(
        kernel=given.kernel,
        cell=spec.cell,
        project=given.project,
        environment=None if isinstance(environment, InstalledPackages) else environment.path,
        site_packages=environment.site_packages,
        frontend=Path(sys.executable) if installed else environment.python,
        framework_version=given.framework.version,
        toolchain=given.toolchain,
        headers=spec.headers,
        sources=spec.sources,
        test_python=environment.python if emulator is None else emulator.python,
        load_test=load_test_rule(spec, given.kernel),
        not_loadable=loading if isinstance(loading, NotLoadable) else None,
        emulator=emulator,
        test_packages=_test_packages(given, run_options),
        keeps_bytecode=run_options.keeps_bytecode,
        wheel=spec.options.wheel,
        epoch=spec.options.epoch,
        cores=run_options.cores,
        environ=given.environ,
        path=run_options.path,
        pins=spec.pins,
        enclosed=run_options.enclosed,
        at_canonical_path=run_options.at_canonical_path,
        rules=given.rules,
    )


def _test_packages(given: BuildInputs, run_options: RunOptions) -> LoadTestPackages:
    """Return what the load test has besides the framework."""
    spec, kernels, locked = given.spec, run_options.kernels, run_options.locked
    if load_test_rule(spec, given.kernel) is LoadTestRule.SKIP:
        return LoadTestPackages()
    if isinstance(spec.environment, InstalledPackages):
        why = "is missing in the current environment: install it there"
        return found(given.kernel, spec.cell, wheels=(), kernels=kernels, locked=locked, why=why)
    pins = spec.environment.pins
    return found(
        given.kernel,
        spec.cell,
        wheels=(*pins.wheels, *(() if spec.test_environment is None else spec.test_environment.pins.wheels)),
        folders=() if spec.test_environment is None else (spec.test_environment.site_packages,),
        kernels=kernels,
        locked=locked,
        why=f"is not pinned for Python {dotted(pins.python)} on {spec.cell.system}",
    )
