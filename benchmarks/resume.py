"""A build that its time limit stops and that goes on, against one that is not stopped.

usage: python benchmarks/resume.py [RUNS]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paired

ROOT = Path(__file__).resolve().parent.parent
VARIANT = "torch213-cxx11-cpu-x86_64-linux"
STOPPED, DONE = 1, 0


def main() -> None:
    """Print the seconds of both, and what the stop cost."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(paired.machine())
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "store"
        build(store, "--dry-run")
        build(store)  # makes the environment
        for _ in range(runs):
            whole, _ = build(store, "--rebuild")
            # Stopped once, in the middle of the compilers' work; a compiler that runs then has worked for nothing.
            first, code = build(store, "--rebuild", "--time-limit", f"{max(2, int(whole * 0.6))}s")
            second, _ = build(store, "--rebuild") if code == STOPPED else (0.0, DONE)
            parts = f"{first:.1f} + {second:.1f} s stopped once"
            print(f"{whole:6.1f} s in one go   {parts}   {(first + second) / whole:5.2f} times")


def build(store: Path, *options: str) -> tuple[float, int]:
    """Build relu for the CPU and return seconds and exit code."""
    command = [sys.executable, "-m", "builder", "build", str(ROOT / "examples/relu"), "--variant", VARIANT, *options]
    began = time.monotonic()
    env = {**os.environ, "BUILDER_STORE": str(store), "CCACHE_DISABLE": "1"}
    done = subprocess.run(command, cwd=store.parent, env=env, capture_output=True, check=False)
    if done.returncode not in (DONE, STOPPED):
        sys.exit(done.stderr.decode())
    return time.monotonic() - began, done.returncode


main()
