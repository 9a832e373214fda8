"""The request of a command: the kernels and cells, and every option of their build."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from builder import codec
from builder.compile_cache import Access
from builder.config import LoadTestRule, ToolchainChoice
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.make.part import BuildPart
from builder.matrix import Cell
from builder.matrix.architectures import TargetGpus
from builder.matrix.selection import Scope
from builder.plan.kernels import NamedKernels
from builder.store import Store
from builder.wheel.options import BuildOptions, epoch_of

_RESERVED = 0.1
"""The share of the memory that stays free for other programs."""


def own_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def own_memory() -> int:
    """Return the bytes that compilers may use: of the smaller of the machine's and its cgroup's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min([total, *cgroup_limits()]) * (1 - _RESERVED))


def cgroup_limits(root: Path = Path("/sys/fs/cgroup"), member: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Yield the memory limits of this process's cgroups and of their parents, versions 1 and 2."""
    try:
        lines = member.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            top, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        path = top / group.lstrip("/")
        for folder in (each for each in (path, *path.parents) if each.is_relative_to(top)):
            with contextlib.suppress(OSError, ValueError):  # the root group has no file, an unlimited one says `max`
                yield int((folder / file).read_text(encoding="ascii"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Everything that a user asks of a build."""

    kernels: NamedKernels = field(default_factory=NamedKernels)
    scope: Scope = field(default_factory=Scope)
    variants: tuple[str, ...] = ()
    """The named cells; empty for all in scope."""
    archs: TargetGpus | str | None = None
    """The GPUs of a quick build, or `native` for this machine's; `all` and None mean a full build."""
    store: Store = field(
        metadata=codec.spelled(write=lambda store: str(store.root), read=lambda root: Store(Path(root)))
    )
    output: Path = Path()
    cores: int = field(default_factory=own_cores)
    """The most compilers at once."""
    memory: int = field(default_factory=own_memory)
    """The most bytes that they may use together."""
    environ: Mapping[str, str]
    isolation: bool = True
    python: Path | None = None
    """With isolation the preferred interpreter; without, the one whose packages are used."""
    options: BuildOptions = field(default_factory=BuildOptions)
    """The options of each cell; the time stamp comes from `environ`."""
    toolchain: ToolchainChoice | None = None
    """The choice of compilers; None leaves it to each kernel."""
    compilers: tuple[Path, ...] = ()
    """The store's folders of pinned compilers, which `environ` names; empty for this machine's compilers."""
    only_possible: bool = False
    """Whether no cell was named: then a cell that this machine cannot build is skipped and does not fail."""
    crosses: bool = False
    """Whether cells of another system were requested, to be cross-compiled here if possible."""
    again: bool = False
    """Whether to build cells that the store already has."""
    part: BuildPart | None = None
    """The part of the objects to compile into the shared cache; None makes wheels."""
    no_cache: bool = False
    """Whether every file is compiled, and no compiled file kept."""
    cache: str | None = None
    """The address of a cache of compiled files that several machines share, in addition to the store's."""
    cache_access: Access = Access.READ
    cache_size: int = 10 << 30
    """The most bytes of compiled files in the store."""
    time_limit: float | None = None
    """Seconds after which the build must have ended; a stopped build can be continued."""
    engine: Literal["local", "nix"] = "local"
    package_set: str = "nixpkgs"
    """With Nix: `nixpkgs`, `host`, or a folder with a package set."""
    allow_unsandboxed: bool = False
    per_file: bool = False
    """With Nix: whether each source has a derivation of its own."""

    @property
    def of_build(self) -> BuildOptions:
        """The options that every engine passes to the build of a cell.

        Raises:
            BuilderError: SOURCE_DATE_EPOCH is not a time that a wheel can have.
        """
        return replace(self.options, epoch=epoch_of(self.environ))

    def require_possible(self, *, dry_run: bool) -> None:
        """Refuse options that make each other useless.

        Raises:
            BuilderError: the compiled files would not be kept, or not be shared; or the engine does not have an option.
        """
        if self.part is not None:
            if self.engine == "nix":
                raise BuilderError("builds by Nix have no parts", help="leave out --part, or --engine nix")
            if self.no_cache:
                message = "--part compiles for others, and --no-cache keeps nothing"
                raise BuilderError(message, help="leave one of them out")
            if self.cache is not None and not self.cache_access.writes:
                raise BuilderError(
                    f"--part compiles for others, and --cache-access {self.cache_access.value} gives them nothing",
                    help="say --cache-access read-write",
                )
        if self.per_file and self.engine != "nix":
            raise BuilderError("--per-file is for derivations of Nix", help="pass --engine nix, or leave it out")
        if self.engine == "nix" and not self.isolation:
            raise BuilderError("Nix builds only against pinned wheels", help="leave out --no-isolation or --engine nix")
        if self.engine == "nix" and dry_run:
            remedy = "leave out --engine nix, or ask Nix: nix build --dry-run"
            raise BuilderError("--dry-run asks the store of the local engine", help=remedy)

    def load_test_of(self, kernel: Kernel) -> LoadTestRule:
        """Return the rule for a wheel that cannot be imported; a part of the objects makes no wheel to test."""
        return LoadTestRule.SKIP if self.part is not None else self.options.load_test or kernel.config.build.load_test

    def for_gpus(self, only: tuple[str, ...]) -> "Ask":
        """Return the same request for only these GPUs; an empty tuple means a full build."""
        return replace(self, options=replace(self.options, only=only))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBuild:
    """The cells of one kernel to build, and how: GPUs and compilers are those of this kernel."""

    kernel: Kernel
    cells: tuple[Cell, ...]
    ask: Ask

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return str(self.kernel.config.general.name)

    @property
    def shown(self) -> str:
        """The kernel's name in results, if several kernels are built; else empty."""
        return self.name if self.ask.kernels.several else ""

    def label(self, cell: Cell) -> str:
        """Return the name of a cell as commands accept it: `KERNEL:VARIANT` if several kernels are built."""
        return f"{self.name}:{cell.variant}" if self.ask.kernels.several else cell.variant
