"""`builder check` in process: a config of 3,500 sources, the configs of the tests, a file of 10,000 errors.

Run: python benchmarks/check.py [RUNS]
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import paired

from builder import lint
from builder.config import read
from builder.config.text import Source
from builder.lint.findings import to_github, to_json, to_sarif, to_text

CONFIGS = sorted((Path(__file__).resolve().parent.parent / "tests/data/config/valid").glob("*.toml"))
GENERAL = '[general]\nname = "many"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cuda"]\n\n[torch]\n\n'
FORMATS = {"text": to_text, "json": to_json, "sarif": to_sarif, "github": to_github}


def many_sources(root: Path, count: int = 3500) -> Path:
    """Make a kernel that lists `count` files, as the longest public config does."""
    package = root / "torch-ext" / "many"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    files = [f"csrc/part{number % 50}/kernel{number}.cu" for number in range(count)]
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    listed = "".join(f'  "{file}",\n' for file in files)
    component = f'[kernel.many]\nbackend = "cuda"\ndepends = ["torch"]\nsrc = [\n{listed}]\n'
    (root / "build.toml").write_text(GENERAL + component, encoding="utf-8")
    return root


def many_errors(root: Path, count: int = 10_000) -> Path:
    """Make a config with an error on each of `count` lines."""
    root.mkdir()
    lines = "".join(f"key{number} = {number}\n" for number in range(count))
    (root / "build.toml").write_text(GENERAL.rstrip() + "\n" + lines, encoding="utf-8")
    return root


def read_all(sources: list[Source]) -> None:
    """Parse every config of the tests that needs no license."""
    for source in sources:
        read(source)


def measure(what: str, action: Callable[[], object], *, runs: int) -> None:
    """Print the median of wall and processor time."""
    action()
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    print(f"{what:44} {statistics.median(walls) * 1e3:8.0f} ms wall {statistics.median(cpus) * 1e3:8.0f} ms cpu")


def main(runs: int) -> None:
    """Measure all."""
    print(paired.machine())
    with tempfile.TemporaryDirectory() as directory:
        kernel = many_sources(Path(directory) / "sources")
        broken = many_errors(Path(directory) / "errors")
        measure("check, 3,500 sources", lambda: lint.inspect(kernel), runs=runs)
        newer = [path for path in CONFIGS if path.name.startswith(("v4", "v5"))]
        texts = [Source.read(path).text for path in newer]
        measure(
            f"read, {len(newer)} configs of the tests",
            lambda: read_all([Source(name="build.toml", text=content) for content in texts]),
            runs=runs,
        )
        measure("check, 10,000 errors", lambda: lint.inspect(broken), runs=runs)
        report = lint.inspect(broken)
        for name, render in FORMATS.items():
            measure(f"  and render them as {name}", lambda render=render: render(report), runs=runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5)
