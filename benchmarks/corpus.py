"""Every kernel below a folder, built for the cells that this machine can build: outcome, time, size and reason.

usage: python benchmarks/corpus.py FOLDER [--seconds N] [--every-cell] [--backend B ...] [--only NAME ...]

A kernel is a folder with a `build.toml`. Of each backend the cell of the newest torch is built, with --every-cell all
of them, each within N seconds (300). A cell that this machine cannot build is a row only where its kernel has no other.
The kernels are those of others: nothing of them is kept but a row of the table, which is printed as it grows.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from builder.matrix.variant import Variant  # noqa: E402

NOTHING_TO_DO = 3
"""The exit code of a build that has no cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell of one kernel, and what became of it."""

    kernel: str
    cell: str
    outcome: str
    seconds: float = 0.0
    kibibytes: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        size = "" if self.kibibytes is None else str(self.kibibytes)
        # A bar would end the column.
        reason = self.reason.replace("|", "\\|")
        return f"| {self.kernel} | {self.cell} | {self.outcome} | {self.seconds:.0f} | {size} | {reason} |"


def main() -> None:
    """Build each kernel and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--every-cell", action="store_true")
    parser.add_argument("--backend", action="append")
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    print("| kernel | cell | outcome | s | KiB | reason |\n|---|---|---|---|---|---|", flush=True)
    count: dict[str, int] = {}
    for config in sorted(options.folder.rglob("build.toml")):
        if options.only and config.parent.name not in options.only:
            continue
        for row in rows(config.parent, options):
            count[row.outcome] = count.get(row.outcome, 0) + 1
            print(row, flush=True)
    print("\n" + ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items())))


def rows(kernel: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Build the chosen cells of one kernel."""
    name = kernel.relative_to(options.folder).as_posix()
    backends = [argument for backend in options.backend or () for argument in ("--backend", backend)]
    code, planned, said = builder("build", kernel, "--dry-run", *backends)
    if planned is None:
        other = "has no backend" in said  # than those of --backend
        outcome = "no cell" if code == NOTHING_TO_DO or other else "refused"
        yield Row(kernel=name, cell="", outcome=outcome, reason=first_line(said))
        return
    possible = [cell for cell in planned if cell["action"] in ("build", "hit")]
    for cell in planned:
        if cell["action"] == "refuse" and (options.every_cell or not possible):
            yield Row(kernel=name, cell=cell["variant"], outcome="refused", reason=first_line(cell["reason"]))
    if not possible:
        reasons = sorted({first_line(cell["reason"]) for cell in planned if cell["action"] == "skip"})
        if reasons:
            yield Row(kernel=name, cell="", outcome="not here", reason="; ".join(reasons[:2]))
    for cell in possible if options.every_cell else newest(possible):
        yield build(kernel, name, cell["variant"], options.seconds)


def newest(cells: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return one cell for each backend: the last, as rows go from old to new."""
    return list({Variant.parse(cell["variant"]).backend: cell for cell in cells}.values())


def build(kernel: Path, name: str, variant: str, seconds: int) -> Row:
    """Build one cell."""
    with tempfile.TemporaryDirectory() as output:
        began = time.monotonic()
        arguments = ("--variant", variant, "--output", output, "--time-limit", f"{seconds}s")
        _, done, said = builder("build", kernel, *arguments)
        took = time.monotonic() - began
        if done is None:
            return Row(kernel=name, cell=variant, outcome="failed", seconds=took, reason=first_line(said))
        (result,) = done
        wheel = Path(result["wheel"]) if result["wheel"] else None
        size = None if wheel is None or not wheel.exists() else wheel.stat().st_size // 1024
    reason = "" if result["status"] in ("built", "hit") else first_line(result["reason"])
    return Row(kernel=name, cell=variant, outcome=outcome_of(result), seconds=took, kibibytes=size, reason=reason)


def outcome_of(result: dict) -> str:
    """Return what became of a cell, and of its load test where it has a wheel."""
    tested = (result["report"] or {}).get("load-test") or {}
    found = tested.get("outcome") if isinstance(tested, dict) else tested
    return f"{result['status']}, {found}" if found else result["status"]


def builder(*arguments: object) -> tuple[int, list | None, str]:
    """Run a command of builder; return its exit code, its JSON if it printed any, and what it said besides."""
    command = [sys.executable, "-m", "builder", *map(str, arguments), "--json", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, errors="replace")
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, None, done.stderr


def first_line(text: str) -> str:
    """Return the first line that says something, and the second where the first only announces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:2])[:240] if lines else ""


if __name__ == "__main__":
    main()
