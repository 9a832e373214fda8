"""The index of many kernels: how long `builder index` takes from nothing and again, and how large its pages are.

Run: python benchmarks/site.py [--kernels 1,50,1000] [--wheels 30] [--variants]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paired

sys.path.insert(0, str(Path(__file__).parents[1]))  # the wheels of the tests

from builder.matrix import rows
from builder.matrix.variant import Variant
from tests.given.device_code import fatbin, image
from tests.wheels import library, make, package

KIB = 1024
ARCHS = (75, 80, 86, 89, 90, 100, 120)
LIBRARY = library(*(fatbin(*(image(2, arch) for arch in ARCHS)) for _ in range(8)))
"""A small library with device code of eight sources."""


def wheels(folder: Path, *, kernels: int, each: int) -> None:
    """Make the wheels of some kernels: those of the first rows of the matrix."""
    folder.mkdir()
    variants = [Variant.parse(row.variant) for row in rows() if row.variant is not None][:each]
    for number in range(kernels):
        for variant in variants:
            name = f"some-kernel-{number:04}"
            files = package(name, variant, more={"_library.abi3.so": LIBRARY})
            make(folder, name, variant, requires=[f"torch=={variant.version}.*"], files=files)


def timed(command: list[str]) -> tuple[float, float]:
    """Run a command; returns its wall seconds and its processor seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def measured(folder: Path, *options: str, kernels: int, each: int) -> None:
    """Print a line for a number of kernels."""
    dist, site = folder / f"dist-{kernels}", folder / f"site-{kernels}"
    wheels(dist, kernels=kernels, each=each)
    command = [sys.executable, "-m", "builder", "index", str(dist), "--output", str(site), *options]
    times = "".join(f" {wall:9.1f} {cpu:7.1f}" for wall, cpu in (timed(command), timed(command)))
    front = (site / "index.html").stat().st_size / KIB
    largest = max(page.stat().st_size for page in site.glob("kernels/*/index.html")) / KIB
    print(f"{kernels:7} {each:6}{times} {front:12.1f} {largest:14.1f}")


def main(sizes: list[int], *options: str, each: int) -> None:
    """Measure each size."""
    print(paired.machine())
    print("kernels wheels  first s   cpu s   again s   cpu s   front KiB largest page KiB")
    with tempfile.TemporaryDirectory() as folder:  # for all: ext4 makes files slowly where many were just removed
        for kernels in sizes:
            measured(Path(folder), *options, kernels=kernels, each=each)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", default="1,50,1000", help="Numbers of kernels, with commas.")
    parser.add_argument("--wheels", type=int, default=30, help="Wheels of each.")
    parser.add_argument("--variants", action="store_true", help="Also as wheel variants.")
    asked = parser.parse_args()
    options = ["--variants"] if asked.variants else []
    main([int(number) for number in asked.kernels.split(",")], *options, each=asked.wheels)
