"""The table variation by backend, measured: every cell is built as it is and with everything varied, and compared.

usage: python benchmarks/repro.py table [--write]     the table, into docs/reproducibility.md with --write
       python benchmarks/repro.py price [RUNS]        build time with all measures, against without
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import paired

from builder.repro.table import BACKENDS, END, START, Row, rendered

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reproducibility.md"
OFF = ("canonical-path", "prefix-map", "random-seed", "install-rpath", "strip", "source-date-epoch", "fixed-zip")


def main() -> None:
    """Run what is asked for."""
    if sys.argv[1:2] == ["price"]:
        price(int(sys.argv[2]) if len(sys.argv) > 2 else 5)  # noqa: PLR2004  an optional argument
        return
    rows = [measured(name, kernel, variant) for name, (kernel, variant) in BACKENDS.items()]
    table = rendered(rows)
    print(table)
    cells = sum(len(row.varied) for row in rows)
    print(f"{cells} variations by backend, {sum(not row.same for row in rows)} backends with a difference")
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        head, tail = text.split(START)[0], text.split(END)[1]
        PAGE.write_text(f"{head}{START}\n{table}{END}{tail}", encoding="utf-8")


def measured(name: str, kernel: str, variant: str) -> Row:
    """Return what `builder repro` says of a cell."""
    command = [sys.executable, "-m", "builder", "repro", str(ROOT / kernel), "--variant", variant, "--json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)
    return Row(name=name, varied=tuple(result["varied"]), same=result["same"])


def price(runs: int) -> None:
    """Print the time of a build with all measures and without, in turn."""
    kernel, variant = BACKENDS["cpu, stable ABI"]
    env = {**os.environ, "CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "builder", "build", str(ROOT / kernel), "--variant", variant, "--rebuild", "-q"]
        build += ["--output", folder]
        commands = {"without": [*build, "--experiment", json.dumps({"without": OFF})], "with all measures": build}
        print(paired.machine())
        paired.table(paired.run(commands, runs=runs, warmups=1, env=env), peer="without")


if __name__ == "__main__":
    main()
