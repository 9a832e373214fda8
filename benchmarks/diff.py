"""Difference of two wheels of 200 MB with 10 architectures x 400 functions each: wall, CPU and peak memory.

The device code is one cubin of the tests for each function and architecture, as ptxas lays it out, with constants that
fill it up to the size; the second wheel spills in each function.

usage: python benchmarks/diff.py [MEGABYTES] [RUNS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import paired
from audit import noise

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from builder.matrix.variant import Variant  # noqa: E402
from tests import wheels  # noqa: E402
from tests.given.device_code import LOAD, STORE, compiled, fatbin, image  # noqa: E402

ARCHS = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120)
FUNCTIONS = 400
VARIANT = Variant.parse("torch213-cxx11-cu130-x86_64-linux")


def code(number: int, filling: bytes, *, spills: bool) -> bytes:
    """Return a fat binary of one function for all architectures."""
    moves = [(STORE, 4), (LOAD, 8)] if spills else []
    cubin = compiled(registers=32 + number % 64, stack=8 * spills, moves=moves, threads=256)
    name = f"_Z4f{number:03}Pf".encode()  # as long as the name that it takes the place of
    content = cubin.replace(b"_Z4tilePf", name) + filling
    return fatbin(*(image(2, arch, content=content) for arch in ARCHS))


def write(folder: Path, *, megabytes: int, spills: bool) -> Path:
    """Write a wheel."""
    filling = noise(1 << 20)[: (megabytes << 20) // (len(ARCHS) * FUNCTIONS)]
    library = wheels.library(b"".join(code(number, filling, spills=spills) for number in range(FUNCTIONS)))
    files = wheels.package("demo", VARIANT, archs=[f"{arch // 10}.{arch % 10}" for arch in ARCHS],
                           more={"_demo_cuda_0123456.abi3.so": library})  # fmt: skip
    folder.mkdir()
    return wheels.make(folder, "demo", VARIANT, files=files, requires=("torch==2.13.*",))


def measure(command: list[str]) -> tuple[float, float, float]:
    """Return wall seconds, CPU seconds and peak MiB of one run and its processes."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in {0, 1}:
        raise SystemExit("builder diff fails")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    megabytes = int(sys.argv[1]) if sys.argv[1:] else 200
    runs = int(sys.argv[2]) if sys.argv[2:] else 3
    with tempfile.TemporaryDirectory() as temporary:
        # In a process of its own: the peak of a child counts from that of its parent.
        with ProcessPoolExecutor(1) as pool:
            paths = [
                pool.submit(write, Path(temporary) / name, megabytes=megabytes, spills=spills).result()
                for name, spills in (("before", False), ("after", True))
            ]
        sizes = " and ".join(f"{path.stat().st_size / 2**20:.0f} MiB" for path in paths)
        print(f"{paired.machine()}; wheels of {sizes}, {len(ARCHS)} architectures, {FUNCTIONS} functions")
        command = [sys.executable, "-m", "builder", "diff", "--no-load", "--json", *map(str, paths)]
        found = [measure(command) for _ in range(runs)]
    wall, cpu, peak = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{'':20} {'wall s':>8} {'cpu s':>8} {'peak MiB':>10}")
    print(f"{'builder diff':20} {wall:8.2f} {cpu:8.2f} {peak:10.0f}")


if __name__ == "__main__":
    main()
