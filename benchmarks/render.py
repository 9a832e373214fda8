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
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        count = 0
        for example in EXAMPLES:
            for backend in render.backends(kernel.load(example)):
                command = [sys.executable, "-m", "builder", "render", str(example), "--backend", backend.value]
                target = Path(folder) / example.name / backend.value
                subprocess.run([*command, "--output", str(target)], check=True, capture_output=True)
                count += 1
        print(f"{count} projects from the command line, a process each: {time.perf_counter() - began:.2f} s")


main()
