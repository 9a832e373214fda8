"""What a build with nothing to do costs: the key of a kernel with 3,500 files, and a hit of the store.

usage: python benchmarks/store.py [RUNS]        processor seconds beside wall seconds: the machine may be busy
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import paired

from builder import kernel as kernels
from builder.config import Backend
from builder.make.record import file_digests
from builder.render import render

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
FILES = 3500
CONFIG = """
[general]
name = "large"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch]
src = ["torch-ext/torch_binding.cpp"]
stable-abi = "2.10"

[kernel.large]
backend = "cpu"
depends = ["torch"]
include = ["csrc"]
src = ["csrc/**/*.cpp", "csrc/**/*.h"]
"""


def large(folder: Path) -> Path:
    """Write a kernel as large as the largest that are published: 3,500 files of 4 KB in 100 folders."""
    (folder / "torch-ext/large").mkdir(parents=True)
    (folder / "build.toml").write_text(CONFIG)
    (folder / "torch-ext/large/__init__.py").write_text("")
    (folder / "torch-ext/torch_binding.cpp").write_text('#include "registration.h"\n')
    for number in range(FILES):
        path = folder / f"csrc/part{number % 100}/file{number}.{'cpp' if number % 2 else 'h'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {number}\n" + "int value;\n" * 370)
    return folder


def key(folder: Path) -> str:
    """Return a digest over all that the project adds to a key."""
    project = render(kernels.load(folder), Backend.CPU)
    digests = file_digests(project.files)
    assert len(digests) >= FILES
    return digests["torch-ext/large/metadata.json"]


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return wall and processor seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def show(name: str, rows: list[tuple[float, float]]) -> None:
    """Print medians."""
    wall, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"{name:52} {wall:8.3f} {cpu:8.3f}")


def command(*arguments: str) -> tuple[float, float]:
    """Return wall and processor seconds of a command, with its children."""
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-m", "builder", *arguments], check=True, capture_output=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, spent


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if sys.argv[1:] else 5
    print(paired.machine())
    print(f"{'':52} {'wall s':>8} {'cpu s':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = large(Path(name) / "large")
        show(f"key of {FILES} files, first time in a process", [timed(lambda: key(folder))])
        show(f"key of {FILES} files, again", [timed(lambda: key(folder)) for _ in range(runs)])
        build = ["build", str(TINY), "--variant", VARIANT, "--output", f"{name}/dist"]
        command(*build)
        hits, helps = [], []
        for _ in range(runs):  # in turn, so that a machine whose speed drifts treats both alike
            hits.append(command(*build))
            helps.append(command("build", "--help"))
    show("builder build --help (process start and imports)", helps)
    show("builder build, a hit", hits)
    beyond = [(hit[0] - start[0], hit[1] - start[1]) for hit, start in zip(hits, helps, strict=True)]
    show("a hit beyond process start", beyond)


if __name__ == "__main__":
    main()
