"""Planning time against the number of candidate rows, and what is saved on the examples.

Run: python benchmarks/matrix.py [--rows N ...]
"""

import argparse
import platform
import statistics
import time
from dataclasses import replace
from pathlib import Path

from builder import kernel as kernels
from builder.config import Version
from builder.matrix import Row, rows
from builder.plan import Plan, Scope, documents, make, text
from builder.plan.costs import Costs, savings
from builder.plan.runners import Runners
from builder.plan.shards import MOST_JOBS, jobs

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RELEASE = Scope()


def many(count: int) -> tuple[Row, ...]:
    """Return `count` different rows: the release matrix again and again, each time with a newer torch."""
    base = [row for row in rows() if row.set == "release" and not row.noarch]
    return tuple(_row(base[number % len(base)], number // len(base)) for number in range(count))


def _row(row: Row, age: int) -> Row:
    torch = Version(f"{row.torch.major + age}.{row.torch.minor}")
    name = None if row.variant is None else row.variant.replace("torch2", f"torch{torch.major}", 1)
    return replace(row, torch=torch, variant=name)


def planned(kernel: kernels.Kernel, among: tuple[Row, ...]) -> Plan:
    """Plan as `builder matrix --format json --shards 256` does: decide, share out, print."""
    plan = make(kernel, among, RELEASE)
    shared = jobs(plan.cells, place=Runners().place, seconds=Costs(kernel.config).seconds, shards=MOST_JOBS)
    documents.document(plan, Runners(), shared)
    return plan


def median(kernel: kernels.Kernel, among: tuple[Row, ...], repeats: int) -> float:
    """Return the median of several plannings, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        planned(kernel, among)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    classic = kernels.load(EXAMPLES / "relu")
    stable = kernels.load(EXAMPLES / "rmsnorm-stable")
    print(f"{'rows':>8}  {'classic':>10}  {'stable ABI':>10}   decide, share over {MOST_JOBS} jobs, print JSON; median")
    for count in asked.rows:
        among = many(count)
        repeats = asked.repeats if count < 100_000 else 3  # noqa: PLR2004
        one, other = (median(kernel, among, repeats) * 1000 for kernel in (classic, stable))
        print(f"{count:>8}  {one:>7.1f} ms  {other:>7.1f} ms")
    for path in sorted(EXAMPLES.iterdir()):
        if (path / "build.toml").is_file():
            kernel = kernels.load(path)
            plan = make(kernel, rows(), RELEASE)
            print()
            print(text.saved(kernel.config.general.name, savings(plan, rows(), RELEASE)), end="")


if __name__ == "__main__":
    main()
