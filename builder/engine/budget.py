"""One budget of cores and memory for everything that builds at once, by admission before start."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.config import Backend, Framework
from builder.matrix import Cell

GiB = 1 << 30
_FILE_MEMORY = {
    ("classic", Backend.CPU): 1.4,
    ("classic", Backend.CUDA): 2.8,
    ("classic", Backend.ROCM): 2.0,
    ("classic", Backend.XPU): 2.0,
    ("classic", Backend.METAL): 1.5,
    ("stable", Backend.CPU): 0.3,
    ("stable", Backend.CUDA): 0.5,
}
"""GiB that the compiler takes for one file of a kind, as measured."""
_DEFAULT_FILE_MEMORY = 0.5
_LEAST = 64 << 20
_RESERVED = 0.1
"""Share of the memory that stays free for everything else."""


def file_memory(cell: Cell) -> int:
    """Return the bytes that one compiler process of a cell is expected to take."""
    kind = "classic" if cell.framework is Framework.TORCH and cell.stable_abi is None else "stable"
    return int(_FILE_MEMORY.get((kind, cell.backend), _DEFAULT_FILE_MEMORY) * GiB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What builds may use: cores, and bytes of memory."""

    cores: int
    memory: int


def machine() -> Machine:
    """Return what this process may use: its affinity, and the smaller of the machine's and its cgroup's memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [total, *cgroup_limits()]
    return Machine(cores=cores, memory=int(min(limits) * (1 - _RESERVED)))


def cgroup_limits(root: Path = Path("/sys/fs/cgroup"), member: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Yield the memory limits of this process's cgroups and of all above them, versions 1 and 2."""
    try:
        lines = member.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            yield from _limits(root, group, file="memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits(root / "memory", group, file="memory.limit_in_bytes")


def _limits(root: Path, group: str, *, file: str) -> Iterator[int]:
    path = root / group.lstrip("/")
    for folder in (path, *path.parents):
        with contextlib.suppress(OSError, ValueError):  # the root group has no file, an unlimited one says `max`
            yield int((folder / file).read_text(encoding="ascii"))
        if folder == root:
            return


class Budget:
    """Cores and memory that cells take before they start and give back when they end."""

    def __init__(self, limits: Machine) -> None:
        self._limits = limits
        self._free = threading.Condition()
        self._memory = limits.memory
        self._running = 0

    @contextlib.contextmanager
    def admit(self, cell: Cell, *, alone: bool = False, learned: int | None = None) -> Iterator[int]:
        """Wait until the cell fits, and yield how many compilers it may run at once.

        A cell that is too large for the whole budget runs alone, one compiler at a time. `learned` is what the largest
        compiler of an earlier build took, in bytes.
        """
        need = max(learned or file_memory(cell), _LEAST)
        with self._free:
            self._free.wait_for(lambda: self._running == 0 or (not alone and self._memory >= need))
            jobs = 1 if alone else max(1, min(self._limits.cores, self._memory // need))
            taken = need * jobs
            self._memory -= taken
            self._running += 1
        try:
            yield jobs
        finally:
            with self._free:
                self._memory += taken
                self._running -= 1
                self._free.notify_all()


class Jobserver:
    """The tokens of a GNU make jobserver, which ninja 1.13 and nvcc understand: all builds share the cores."""

    def __init__(self, folder: Path, *, cores: int) -> None:
        self.path = folder / "jobserver"
        os.mkfifo(self.path, 0o600)
        # Open for both, so that opening does not wait for the other end.
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        os.write(self._descriptor, b"+" * (cores - 1))
        self._cores = cores

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that tell a build of it; they decide no bit."""
        return {"MAKEFLAGS": f" -j{self._cores} --jobserver-auth=fifo:{self.path}"}

    def close(self) -> None:
        """Take the tokens away."""
        os.close(self._descriptor)
        self.path.unlink(missing_ok=True)
