"""Planning time against the number of candidate rows, and what is saved on the examples.

Run: python benchmarks/matrix.py [--rows N ...]
"""

import argparse
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from builder import kernel as kernels
from builder.ci.plan import CiJob, CiPlan, documents, make, text, without_stored
from builder.ci.plan.changes import changed_since
from builder.ci.plan.jobs import MOST_JOBS, Costs, Runners, jobs, work_of
from builder.config import Config, Version
from builder.matrix import Row, rows
from builder.matrix.selection import Scope

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


def planned(kernel: kernels.Kernel, among: tuple[Row, ...]) -> CiPlan:
    """Plan as `builder matrix --format json --shards 256` does: decide, share out, print."""
    plan = make(kernel, among, RELEASE)
    shared = jobs(tuple(work_of(plan)), place=Runners().place, shards=MOST_JOBS)
    documents.document(plan, Runners(), shared)
    return plan


def medians(kernel: kernels.Kernel, among: tuple[Row, ...], repeats: int) -> str:
    """Return the medians of several plannings: the decisions alone, and with shards and JSON."""
    alone, whole = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        make(kernel, among, RELEASE)
        middle = time.perf_counter()
        planned(kernel, among)
        alone.append((middle - began) * 1000)
        whole.append((time.perf_counter() - middle) * 1000)
    return f"{statistics.median(alone):>8.1f} ms  {statistics.median(whole):>8.1f} ms"


def jobs_of(plan: CiPlan) -> tuple[CiJob, ...]:
    """Return the jobs of `builder matrix --format github`."""
    return jobs(tuple(work_of(plan)), place=Runners().place)


def figures(plan: CiPlan) -> str:
    """Return cells, jobs and estimated compile seconds."""
    costs = Costs(plan.kernel.config)
    cells = {cell.variant: cell for cell in plan.cells}.values()
    return f"{len(plan.cells):>5}  {len(jobs_of(plan)):>4}  {sum(map(costs.compile_seconds, cells)):>6.0f} s"


def git(root: Path, *arguments: str) -> None:
    """Run git with an identity of its own."""
    who = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org")
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


def after_changes(example: Path, folder: Path) -> Iterator[tuple[str, CiPlan, float]]:
    """Yield what is left to build after a change of one file of each backend, and how long it takes to tell."""
    root = folder / example.name
    shutil.copytree(example, root, ignore=shutil.ignore_patterns(".*", "build", "dist"))
    git(folder, "init", "-q")
    git(root, "add", "-A", ".")
    git(root, "commit", "-q", "-m", "before")
    config = kernels.load(root).config
    changes = {"README.md": "a README", config_source(config): "the binding"}
    changes |= {source: f"a source of {part.backend}" for part in config.kernel.values() for source in part.src[:1]}
    for name, what in changes.items():
        if name == "" or (name != "README.md" and not (root / name).is_file()):
            continue
        with (root / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        began = time.perf_counter()
        plan = changed_since(make(kernels.load(root), rows(), RELEASE), "HEAD", rows())
        yield what, plan, time.perf_counter() - began
        git(root, "add", "-A", ".")
        git(root, "commit", "-q", "-m", what)


def config_source(config: Config) -> str:
    """Return the first source of the binding; empty for a pure-Python kernel."""
    binding = config.torch or config.tvm_ffi
    return binding.src[0] if binding is not None and binding.src else ""


def planning(counts: list[int], repeats: int) -> None:
    """Print the planning time for several numbers of rows."""
    classic = kernels.load(EXAMPLES / "relu")
    stable = kernels.load(EXAMPLES / "rmsnorm-stable")
    print(f"medians: decisions alone, and with {MOST_JOBS} shards and printed as JSON")
    print(f"{'rows':>8}  {'classic':>24}  {'stable ABI':>24}")
    for count in counts:
        among = many(count)
        often = repeats if count < 100_000 else 3  # noqa: PLR2004
        print(f"{count:>8}  {medians(classic, among, often)}  {medians(stable, among, often)}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    planning(asked.rows, asked.repeats)
    for path in sorted(EXAMPLES.iterdir()):
        if not (path / "build.toml").is_file():
            continue
        kernel = kernels.load(path)
        plan = make(kernel, rows(), RELEASE)
        print()
        print(text.table_of_savings(plan, rows()), end="")
        print(f"\n{'left to build':<28}  cells  jobs   compile   time to tell")
        print(f"{'everything':<28}  {figures(plan)}")
        with tempfile.TemporaryDirectory() as folder:
            for what, left, seconds in after_changes(path, Path(folder)):
                print(f"{'after ' + what:<28}  {figures(left)}   {seconds * 1000:.0f} ms")
        print(f"{'all in the store':<28}  {figures(without_stored(plan, lambda _: True))}")


if __name__ == "__main__":
    main()
