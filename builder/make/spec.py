"""The specification of one build: the same value for both engines; Nix writes it as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder import codec, json_text
from builder.make.kernel_lock import LockedTrees, read_trees, write_trees
from builder.matrix import Cell
from builder.matrix.variant import dotted
from builder.pins import PinSet
from builder.wheel.options import BuildOptions


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
    options: BuildOptions = field(default_factory=BuildOptions, metadata=codec.spelled(read=BuildOptions.from_json))

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
