"""Time commands in turn, A B C A B C …, so that a machine whose speed drifts treats all alike; figures are medians."""

import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Seconds and peak memory of a command over its runs."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median seconds."""
        return statistics.median(self.wall)

    @property
    def median_cpu(self) -> float:
        """Median processor seconds, with all children."""
        return statistics.median(self.cpu)


def machine() -> str:
    """Return a line about this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}, Python {platform.python_version()}"


def run(
    commands: Mapping[str, Sequence[str]], *, runs: int, warmups: int = 1, env: Mapping[str, str] | None = None
) -> dict[str, Figures]:
    """Run every command `runs` times, in turn, after `warmups` rounds that do not count."""
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + warmups):
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=None if env is None else dict(env))
            seconds = time.perf_counter() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if turn >= warmups:
                wall[name].append(seconds)
                cpu[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {name: Figures(tuple(wall[name]), tuple(cpu[name])) for name in commands}


def table(figures: Mapping[str, Figures], *, peer: str) -> None:
    """Print the medians and each one's ratio to `peer`."""
    print(f"{'':36} {'wall s':>9} {'cpu s':>9} {'wall / ' + peer:>24} {'cpu /':>8}")
    for name, each in figures.items():
        wall, cpu = each.median / figures[peer].median, each.median_cpu / figures[peer].median_cpu
        print(f"{name:36} {each.median:9.3f} {each.median_cpu:9.3f} {wall:24.2f} {cpu:8.2f}")
