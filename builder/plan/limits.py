"""The cores and the memory that builds may use."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_RESERVED = 0.1
"""Share of the memory that stays free for everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The cores and the bytes of memory that builds may use."""

    cores: int
    memory: int


def of_machine() -> Machine:
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
