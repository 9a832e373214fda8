"""A repository of many kernels: how long each command that builds nothing takes over all of them.

Run: python benchmarks/many.py FOLDER [--runs N] [--since REV]    (FOLDER has the kernels, one level down)
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a command."""

    wall: float
    cpu: float
    """Processor seconds, those of git among them."""
    code: int


def once(command: Sequence[str], folder: Path) -> Run:
    """Run a command in a folder."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "builder", *command], cwd=folder, capture_output=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall=wall, cpu=cpu, code=done.returncode)


def main(folder: Path, *, runs: int, since: str | None) -> None:
    """Run the commands in turn, and print the median of each."""
    commands = {
        "check": ["check", "*"],
        "matrix": ["matrix", "*"],
        "matrix --format github": ["matrix", "*", "--format", "github"],
        "matrix --explain": ["matrix", "*", "--explain"],
    }
    if since is not None:
        commands[f"matrix --changed-since {since}"] = ["matrix", "*", "--changed-since", since]
    found: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(runs + 1):  # the first of each is warming up
        for name, command in commands.items():
            found[name].append(once(command, folder))
    print(paired.machine())
    print(f"{len(list(folder.glob('*/build.toml')))} kernels, medians of {runs} runs in turn")
    for name, each in found.items():
        wall, cpu = (statistics.median(getattr(run, kind) for run in each[1:]) for kind in ("wall", "cpu"))
        codes = ", ".join(sorted({str(run.code) for run in each}))
        print(f"{name:32} {wall:7.2f} s wall {cpu:7.2f} s cpu   exit {codes}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--since", metavar="REV")
    asked = parser.parse_args()
    main(asked.folder, runs=asked.runs, since=asked.since)
