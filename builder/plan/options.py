"""The options of a build, for every engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.compile_cache import CacheOptions
from builder.config import LoadTestRule
from builder.kernel import Kernel
from builder.make.part import Part
from builder.make.reproducible import Rules, epoch_of
from builder.make.spec import BuildOptions
from builder.matrix import Cell
from builder.plan.limits import Machine
from builder.store import Store
from builder.wheel.options import WheelOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user asked of a build."""

    store: Store
    output: Path
    limits: Machine
    environ: Mapping[str, str]
    isolation: bool = True
    python: Path | None = None
    """With isolation the interpreter to prefer; without, the one whose packages are used."""
    wheel: WheelOptions = field(default_factory=WheelOptions)
    unique_id: str | None = None
    allow_unsafe_flags: bool = False
    only_possible: bool = False
    """No cell was named: one that this machine cannot build is skipped and does not fail."""
    crosses: bool = False
    """Cells of another system were asked for: they are compiled here, where there is a compiler for them."""
    again: bool = False
    """Build also what the store has."""
    load_test: LoadTestRule | None = None
    """What becomes of a wheel that cannot be imported; None leaves it to build.toml."""
    rules: Rules = field(default_factory=Rules)
    part: Part | None = None
    """The part of the objects to compile, for others who have the same cache; None makes wheels."""
    cache: CacheOptions | None = field(default_factory=CacheOptions)
    """Where compiled files are kept; None compiles all of them."""
    compilers: tuple[Path, ...] = ()
    """The folders of the store with pinned compilers, which `environ` names; none for those of this machine."""
    time_limit: float | None = None
    """Seconds after which the build has ended, finished or stopped; what was stopped can go on later."""

    @property
    def of_build(self) -> BuildOptions:
        """The options that every engine passes to the build of a cell.

        Raises:
            BuilderError: SOURCE_DATE_EPOCH is not a time that a wheel can have.
        """
        return BuildOptions(
            wheel=self.wheel,
            unique_id=self.unique_id,
            allow_unsafe_flags=self.allow_unsafe_flags,
            epoch=epoch_of(self.environ),
            load_test=self.load_test,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBuild:
    """The cells of one kernel that are to be built, and how."""

    kernel: Kernel
    cells: tuple[Cell, ...]
    options: Options

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return str(self.kernel.config.general.name)

    @property
    def folder(self) -> str:
        """The folder of the kernel, as it was named."""
        return self.kernel.root.as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class NixOptions:
    """Options of the Nix engine alone."""

    package_set: str = "nixpkgs"
    """`nixpkgs`, `host`, or a folder with a package set."""
    allow_unsandboxed: bool = False
    per_file: bool = False
    """Whether each source is compiled by a derivation of its own."""
