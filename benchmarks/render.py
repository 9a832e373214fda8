"""Rendering: one kernel in process, and every example for every backend from the command line.

usage: python benchmarks/render.py [RUNS]
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paired

from builder import kernel, render

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/build.toml"))


def main() -> None:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(paired.machine())
    for example in EXAMPLES:
        loaded = kernel.load(example)
        for backend in render.backends(loaded):
            times = []
            for _ in range(runs + 1):  # the first compiles the templates
                began = time.perf_counter()
                render.render(loaded, backend)
                times.append(time.perf_counter() - began)
            print(f"{example.name:16} {backend.value:6} {1000 * statistics.median(times[1:]):6.1f} ms in process")
    command = [sys.executable, "-m", "builder", "render"]
    whole, pairs = [*command, *map(str, EXAMPLES), "--backend", "all", "--output"], []
    for example in EXAMPLES:
        pairs += [(example, backend.value) for backend in render.backends(kernel.load(example))]
    together, apart, start = [], [], []
    for _ in range(runs):
        start.append(timed([[sys.executable, "-c", "pass"]]))
        with tempfile.TemporaryDirectory() as folder:
            together.append(timed([[*whole, f"{folder}/all"]]))
            each = [[*command, str(example), "--backend", name] for example, name in pairs]
            apart.append(timed([[*one, "--output", f"{folder}/{place}"] for place, one in enumerate(each)]))
    print(f"{len(pairs)} projects, one command: {statistics.median(together):.2f} s")
    print(f"{len(pairs)} projects, a command each: {statistics.median(apart):.2f} s")
    print(f"python -c pass: {statistics.median(start):.2f} s")


def timed(commands: list[list[str]]) -> float:
    """Return the wall seconds of commands, one after the other."""
    began = time.perf_counter()
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


main()
