"""The table variation by backend, measured: every cell is built as it is and with everything varied, and compared.

usage: python benchmarks/repro.py table [--write]     the table, into docs/reproducibility.md with --write
       python benchmarks/repro.py nix                 the same for builds by Nix
       python benchmarks/repro.py price [RUNS]        build time with all measures, against without
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paired
from repro_table import BACKENDS, END, START, Example, Row, rendered

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.integration import nix_repro, nix_tools, rocm  # noqa: E402
from tests.integration import rendered as built  # noqa: E402

PAGE = ROOT / "docs/reproducibility.md"
OFF = ("canonical-path", "prefix-map", "random-seed", "install-rpath", "strip", "source-date-epoch", "fixed-zip")


def main() -> None:
    """Run what is asked for."""
    if sys.argv[1:2] == ["price"]:
        price(int(sys.argv[2]) if len(sys.argv) > 2 else 5)  # noqa: PLR2004  an optional argument
        return
    if sys.argv[1:2] == ["nix"]:
        through_nix()
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [measured(name, example, Path(folder)) for name, example in BACKENDS.items()]
    table = rendered(rows)
    print(table)
    cells = sum(len(row.varied) for row in rows)
    print(f"{cells} variations by backend, {sum(not row.same for row in rows)} backends with a difference")
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        head, tail = text.split(START)[0], text.split(END)[1]
        PAGE.write_text(f"{head}{START}\n{table}{END}{tail}", encoding="utf-8")


def measured(name: str, example: Example, folder: Path) -> Row:
    """Return what `builder repro` says of a cell; one that is not pinned is built in an environment in `folder`."""
    command = [sys.executable, "-m", "builder", "repro", str(ROOT / example.kernel), "--variant", example.variant]
    env = dict(os.environ)
    if not example.pinned:
        python, env["ROCM_PATH"] = map(str, rocm.environment(folder, built.torch_folder(), rocm.thrust(folder)))
        command += ["--no-isolation", "--python", python]
    # As often as there are values of a variation, and once as it is.
    done = subprocess.run([*command, "--times", "4", "--json"], check=False, stdout=subprocess.PIPE, text=True, env=env)
    result = json.loads(done.stdout)
    print(f"{name}: {'same' if result['same'] else result['causes']}, {result['builds']} builds", flush=True)
    return Row(name=name, varied=tuple(result["varied"]), same=result["same"])


def through_nix() -> None:
    """Print for each pinned backend whether Nix gives the same file in another store, with all varied around it."""
    for name, example in BACKENDS.items():
        if example.pinned:
            kernel = Path(example.kernel)
            with tempfile.TemporaryDirectory() as folder, nix_tools.guarded_folder() as store:
                copy = Path(shutil.copytree(ROOT / kernel, Path(folder) / kernel.name))
                (copy / "build.toml").open("a").write(f"\n# {secrets.token_hex(16)}\n")  # no store has this one
                began = time.monotonic()
                first, second = nix_repro.twice(copy, example.variant, Path(folder), elsewhere=store)
                word = "same" if first.sha256 == second.sha256 else "differs"
            print(f"{name}: {word}, {time.monotonic() - began:.0f} s", flush=True)


def price(runs: int) -> None:
    """Print the time of a build with all measures and without, in turn."""
    example = BACKENDS["cpu, stable ABI"]
    env = {**os.environ, "CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "builder", "build", str(ROOT / example.kernel), "--variant", example.variant]
        build += ["--rebuild", "-q", "--output", folder]
        commands = {"without": [*build, "--experiment", json.dumps({"without": OFF})], "with all measures": build}
        print(paired.machine())
        paired.table(paired.run(commands, runs=runs, warmups=1, env=env), peer="without")


if __name__ == "__main__":
    main()
