"""The spec of one build, which is the same value for both engines, and the job of building it on one machine."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import codec, json_text, sandbox
from builder import toolchain as tools
from builder.config import LoadTestRule
from builder.errors import NotHereError, ToolError
from builder.kernel import Kernel
from builder.loadtest import packages
from builder.loadtest.packages import KernelFolder, LoadTestPackages
from builder.make import reproducible
from builder.make.framework import FrameworkIdentity
from builder.make.kernel_lock import LockedTrees, read_trees, write_trees
from builder.make.ninja_log import File
from builder.matrix import Cell
from builder.matrix.variant import dotted
from builder.pins import PinnedWheel, PinSet
from builder.render.project import Project
from builder.toolchain import Toolchain, emulator
from builder.toolchain.emulator import Emulator
from builder.toolchain.tool import Search, no_digest
from builder.wheel.options import BuildOptions


class CompileError(ToolError):
    """A compiler refused the kernel."""

    linking: bool = False
    """Whether the linker failed, which no source of the kernel can cause."""
    files: tuple[File, ...] = ()
    """The files that were made before the failure."""


class OutOfMemoryError(CompileError):
    """The system ended a compiler because memory ran out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPackages:
    """An environment with exactly the pinned wheels."""

    path: Path
    pins: PinSet

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """The folder of the wheels."""
        return self.path / "lib" / f"python{dotted(self.pins.python)}" / "site-packages"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackages:
    """The packages installed on this machine, for a build without isolation."""

    python: Path
    site_packages: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A kernel, a cell, an environment and options; `cells.nix` writes the same value as JSON."""

    kernel: Path
    cell: Cell
    environment: PinnedPackages | InstalledPackages
    test_environment: PinnedPackages | None = None
    """Additional packages for the load test, after those of the build's environment."""
    headers: Mapping[str, Path] = field(default_factory=dict)
    """Fetched folders of headers, by the CMake variable that names each."""
    sources: Mapping[str, Path] = field(default_factory=dict)
    """The trees of foreign sources, or their archives, by name."""
    kernels: LockedTrees | None = field(default=None, metadata=codec.spelled(write=write_trees, read=read_trees))
    """The kernels of `kernels.lock`, for the load test; None without a lock, or if the engine finds them later."""
    options: BuildOptions = field(default_factory=BuildOptions, metadata=codec.spelled(read=reproducible.read_options))

    @property
    def pins(self) -> str:
        """The digest of the pinned wheels; empty without isolation."""
        return self.environment.pins.digest if isinstance(self.environment, PinnedPackages) else ""

    @property
    def environments(self) -> tuple[Path, ...]:
        """The paths of the pinned environments in a build."""
        used = (self.environment, self.test_environment)
        return tuple(packages.path for packages in used if isinstance(packages, PinnedPackages))

    def to_json(self) -> str:
        """Return the spec as JSON, which `from_json` reads again."""
        return json_text.canonical(codec.encode(self))

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """Read a spec.

        Raises:
            BuilderError: an option or a locked kernel is not valid.
        """
        return codec.decode(cls, json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLoadable:
    """The reason why this machine cannot load a wheel, and the remedy."""

    reason: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One build on one machine; its build key is known before anything is installed."""

    spec: Spec
    kernel: Kernel
    project: Project
    framework: FrameworkIdentity
    toolchain: Toolchain | None
    """None if nothing is compiled."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The user's variables, of which few reach a build."""
    enclosed: bool = False
    """Whether Nix runs the build, so that its sandbox replaces builder's."""
    in_nix_sandbox: bool = False
    """Whether the build is inside Nix's sandbox."""
    at_canonical_path: bool = False
    """Whether the scratch directory itself is at the canonical path."""
    loader: Emulator | NotLoadable | None = None
    """The emulator to load the wheel with if this Python cannot, or the reason why this machine cannot."""
    test_packages: LoadTestPackages = field(default_factory=LoadTestPackages)
    """The packages for the load test other than the framework; they do not affect the wheel."""
    keeps_bytecode: bool = False
    """Whether the load test may keep the framework's bytecode: only in an environment of the store."""
    cores: int | None = None
    """The most parallel compilers; None to let ninja decide."""
    jobserver: Mapping[str, str] = field(default_factory=dict)
    """Variables that name a jobserver, if several builds share the cores."""
    path: tuple[Path, ...] = ()
    """Folders of tools to search before the system's."""
    ccache: Path | None = None
    """The ccache program, if something answers it in the scratch directory."""

    @property
    def cell(self) -> Cell:
        """The cell that is built."""
        return self.spec.cell

    @property
    def options(self) -> BuildOptions:
        """The options of the wheel and of its load test."""
        return self.spec.options

    @property
    def environment(self) -> Path | None:
        """The path of the pinned environment; None to build against the packages at `site_packages`."""
        found = self.spec.environment
        return None if isinstance(found, InstalledPackages) else found.path

    @property
    def site_packages(self) -> Path:
        """The folder of the framework."""
        return self.spec.environment.site_packages

    @property
    def frontend(self) -> Path:
        """The interpreter with scikit-build-core, cmake and ninja."""
        return Path(sys.executable) if self.environment is None else self.spec.environment.python

    @property
    def sandboxed(self) -> bool:
        """Whether the build and the load test run in builder's own sandbox."""
        return not self.enclosed and "sandbox" not in self.options.without and sandbox.why_unavailable() is None

    @property
    def canonical(self) -> bool:
        """Whether the scratch directory is mounted at the canonical path."""
        return "canonical-path" not in self.options.without and (self.sandboxed or sandbox.can_mount())

    @property
    def load_test(self) -> LoadTestRule:
        """The rule for a wheel that cannot be imported: the requested one, or else build.toml's."""
        return self.options.load_test or self.kernel.config.build.load_test

    @property
    def emulator(self) -> Emulator | None:
        """The emulator that runs `test_python`, if that is for another processor."""
        return self.loader if isinstance(self.loader, Emulator) else None

    @property
    def not_loadable(self) -> NotLoadable | None:
        """The reason why the wheel is not loaded, if this machine cannot."""
        return self.loader if isinstance(self.loader, NotLoadable) else None

    @property
    def test_python(self) -> Path:
        """The interpreter that loads the wheel."""
        return self.spec.environment.python if self.emulator is None else self.emulator.python


def loader_of(spec: Spec, environ: Mapping[str, str]) -> Emulator | NotLoadable | None:
    """Return the emulator for another system's wheel, or why it cannot be loaded; None for this machine's wheels."""
    cell, environment = spec.cell, spec.environment
    if isinstance(environment, InstalledPackages):
        return None
    others = environment.pins.other_pythons
    if tools.crosses(cell):
        search = Search(environ=environ, digest=no_digest)
        try:
            return emulator.find(search, cell.system, python=(*others, environment.pins.python)[0])
        except NotHereError as error:
            return NotLoadable(
                reason=f"it was compiled on {tools.system()}, where {error.message}",
                help=f"load it on a machine of {cell.system}; or {error.help}",
            )
    if others:
        return NotLoadable(
            reason=f"its {cell.framework.value} is pinned for Python {' and '.join(map(dotted, others))} alone",
            help=f"uv python install {dotted(others[-1])}, and build it again",
        )
    return None


def with_load_test(
    job: Job, *, kernels: Mapping[str, Path] | None = None, locked: tuple[KernelFolder, ...] = ()
) -> Job:
    """Add the loader and the packages of the load test to a job whose environments exist.

    `kernels` are wheels of the kernels that it depends on, by repository; `locked` are the kernels of its lock.
    """
    spec, environment, tested = job.spec, job.spec.environment, job.spec.test_environment
    found, wheels = LoadTestPackages(), tuple[PinnedWheel, ...]()
    if job.load_test is not LoadTestRule.SKIP:
        if isinstance(environment, InstalledPackages):
            why = "is missing in the current environment: install it there"
        else:
            wheels = (*environment.pins.wheels, *(() if tested is None else tested.pins.wheels))
            why = f"is not pinned for Python {dotted(environment.pins.python)} on {spec.cell.system}"
        found = packages.found(
            job.kernel,
            spec.cell,
            wheels=wheels,
            folders=() if tested is None else (tested.site_packages,),
            kernels=kernels,
            locked=locked,
            why=why,
        )
    return replace(job, loader=loader_of(spec, job.environ), test_packages=found)
