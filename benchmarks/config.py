"""Time the reading of configs, in process: `python benchmarks/config.py`.

Every figure is the median of the runs, in milliseconds of this process, with the limit it must keep. Exit code 1 if
one does not.
"""

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from builder import kernel, toml
from builder.config import read
from builder.config.text import Source
from builder.errors import ConfigError
from builder.kernel import source_set

CONFIGS = Path(__file__).resolve().parent.parent / "tests/data/config/valid"
RUNS = 9
GENERAL = '[general]\nname = "large"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cuda"]\n\n[torch]\n'
COMPONENT = '\n[kernel.flash]\nbackend = "cuda"\ndepends = ["torch"]\nsrc = [\n'


def measured(action: Callable[[], object]) -> float:
    """Return the median time of `action` in milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return 1000 * statistics.median(times)


def large(root: Path, *, files: int) -> Path:
    """Make a kernel that lists `files` sources."""
    listed = [f"csrc/generated/flash_fwd_hdim{number % 256}_bf16_{number}.cu" for number in range(files)]
    (root / "csrc/generated").mkdir(parents=True)
    (root / "torch-ext/large").mkdir(parents=True)
    for path in (*listed, "torch-ext/large/__init__.py"):
        (root / path).touch()
    text = GENERAL + COMPONENT + "".join(f'  "{path}",\n' for path in listed) + "]\n"
    (root / "build.toml").write_text(text, encoding="utf-8")
    return root


def mistakes(lines: int) -> Callable[[], object]:
    """Return the reading of a config with a mistake on each line."""
    text = GENERAL + "".join(f"minverr{number} = 1\n" for number in range(lines))

    def action() -> None:
        try:
            read(Source(name="build.toml", text=text))
        except ConfigError as error:
            if len(error.problems) != lines:
                raise AssertionError from error

    return action


def main() -> int:
    """Print the figures."""
    configs = [path.read_text(encoding="utf-8") for path in sorted(CONFIGS.glob("*.toml"))]
    with tempfile.TemporaryDirectory() as directory:
        root = large(Path(directory), files=3500)
        text = (root / "build.toml").read_text(encoding="utf-8")
        loaded = kernel.load(root)
        figures: list[tuple[str, float, Callable[[], object]]] = [
            ("load a config of 3,500 sources", 150, lambda: kernel.load(root)),
            ("  of which the TOML parser", 150, lambda: toml.loads(text)),
            ("find its 3,500 sources", 150, lambda: source_set.source_set(loaded)),
            (
                f"read the {len(configs)} configs of the tests",
                100,
                lambda: [read(Source(name="build.toml", text=config), license="MIT") for config in configs],
            ),
            ("report 10,000 mistakes", 2000, mistakes(10_000)),
            ("report 1,000 mistakes", 200, mistakes(1_000)),
        ]
        print(f"Python {platform.python_version()}, {platform.machine()}, median of {RUNS} runs")
        failed = 0
        for name, limit, action in figures:
            found = measured(action)
            failed += found > limit
            print(f"{name:40} {found:9.1f} ms  (limit {limit:.0f} ms)")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
