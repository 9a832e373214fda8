"""What one build is made of: the value between an engine and `build`, light to import."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.config import LoadTestRule
from builder.errors import ToolError
from builder.kernel import Kernel
from builder.loadtest.packages import LoadTestPackages
from builder.make.ninja_log import File
from builder.make.reproducible import Rules
from builder.matrix import Cell
from builder.render.project import Project
from builder.toolchain import Toolchain
from builder.toolchain.emulator import Emulator
from builder.wheel.options import WheelOptions


class CompileError(ToolError):
    """A compiler refused the kernel."""

    linking: bool = False
    """Whether it was the linker, which none of the kernel's sources can tell what to do."""
    files: tuple[File, ...] = ()
    """What was made before."""


class OutOfMemoryError(CompileError):
    """The system ended a compiler because memory ran out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLoadable:
    """Why nothing of a wheel can be loaded on this machine, and what to do about it."""

    reason: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildJob:
    """All that one build is made of."""

    kernel: Kernel
    cell: Cell
    project: Project
    environment: Path | None
    """Prefix of a pinned environment; None builds against what is installed at `site_packages`."""
    site_packages: Path
    """Where the framework is."""
    frontend: Path
    """Interpreter that has scikit-build-core, cmake and ninja."""
    framework_version: str
    toolchain: Toolchain | None
    """None where nothing is compiled."""
    headers: Mapping[str, Path] = field(default_factory=dict)
    """Folders of headers that were fetched before, by the CMake variable that names each."""
    sources: Mapping[str, Path] = field(default_factory=dict)
    """The trees of foreign sources, or their archives, by name."""
    test_python: Path
    """Interpreter that loads the wheel."""
    load_test: LoadTestRule = LoadTestRule.REQUIRE
    """What becomes of a wheel that cannot be imported."""
    not_loadable: NotLoadable | None = None
    """Why the wheel is not loaded, where this machine cannot."""
    emulator: Emulator | None = None
    """What runs `test_python`, where that is for another processor."""
    test_packages: LoadTestPackages = field(default_factory=LoadTestPackages)
    """What the load test finds besides the framework; nothing of it reaches the wheel."""
    keeps_bytecode: bool = False
    """Whether the load test may keep the framework's bytecode: only in an environment of the store."""
    wheel: WheelOptions = field(default_factory=WheelOptions)
    epoch: int
    cores: int | None = None
    """Most compilers at once; None leaves it to ninja."""
    jobserver: Mapping[str, str] = field(default_factory=dict)
    """Variables that name a jobserver, where compilers of several builds share the cores."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The user's variables, of which few reach a build."""
    path: tuple[Path, ...] = ()
    """Folders of tools before those of the system, for machines that have them elsewhere."""
    pins: str = ""
    """Digest of the pinned wheels; empty without isolation."""
    enclosed: bool = False
    """Whether it runs in Nix's sandbox, which takes the place of ours."""
    at_canonical_path: bool = False
    """Whether the scratch directory itself is at the canonical path."""
    ccache: Path | None = None
    """What keeps compiled files, where something answers it in the scratch directory."""
    rules: Rules = field(default_factory=Rules)
    """The rules of reproducible builds that hold: all of them, in what is delivered."""
