"""Nix with the host's tools: evaluation, a build against the local engine and bare cmake and ninja, and doing nothing.

usage: python benchmarks/nix.py [RUNS]        torch, cmake and ninja must be importable; Nix must be there
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import paired

from builder.engine.nix_command import HOST, LIBRARY, Nix
from builder.run import Processes

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
SALTED = "csrc/factor.h"


def main() -> None:
    """Print the tables: evaluations, builds, nothing to do, and the size of closures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(paired.machine())
    print("\nEvaluation")
    paired.table(paired.run(evaluations(), runs=runs), peer="one cell")
    for name, command in evaluations().items():
        print(f"  {name:34} {memory(command):6.0f} MiB at most")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel = Path(shutil.copytree(TINY, folder / "tiny"))
        salt = ["sh", "-c", f'echo "// $(od -An -N8 -tx8 /dev/urandom)" >> "{kernel / SALTED}"; exec "$@"', "sh"]
        local = [sys.executable, "-m", "builder", "build", str(kernel), "--variant", VARIANT, "--output", f"{name}/out"]
        nix = [*local, "--engine", "nix", "--package-set", "host"]
        env = {**os.environ, "CCACHE_DISABLE": "1", "PYTHONPATH": str(ROOT)}
        print("\nA cell that was never built (the tiny kernel, its environment made)")
        builds = {
            "cmake and ninja": [*salt, *bare(kernel, folder)],
            "builder build": [*salt, *local],
            "builder build --engine nix": [*salt, *nix],
        }
        paired.table(paired.run(builds, runs=runs, warmups=1, env=env), peer="cmake and ninja")
        print("\nNothing to do")
        subprocess.run([*local], check=True, env=env, capture_output=True)
        again = {"builder build": local, "builder build --engine nix": nix, "nix build": nix_build(kernel)}
        paired.table(paired.run(again, runs=runs, warmups=1, env=env), peer="builder build")
        print("\nClosures")
        sizes(kernel)


def memory(command: list[str]) -> float:
    """Return the most memory that a command had at once, in MiB."""
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return usage.ru_maxrss / 1024


def request(kernel: Path, variants: list[str]) -> str:
    """Return the argument of the library's `engine.nix`."""
    table = {"kernel": str(kernel), "lock": str(ROOT / "flake.lock"), "set": HOST, "system": "x86_64-linux"}
    return json.dumps({**table, "options": {}, "variants": variants})


def evaluations() -> dict[str, list[str]]:
    """Return the commands that evaluate one cell, one example and all cells of all examples."""
    evaluate = ["nix-instantiate", "--eval", "--strict", "--json"]
    one = [*evaluate, str(LIBRARY / "engine.nix"), "-A", "plan", "--argstr", "request", request(TINY, [VARIANT])]
    flake = f"""
      let outputs = (import {LIBRARY}).outputs.flake {{
        examples = {ROOT}/examples;
        selected = {{ }};
      }} {{
        self = {{ }};
        nixpkgs.builderPackageSet.x86_64-linux = import {LIBRARY}/host {{ system = "x86_64-linux"; }};
      }};
      in
    """
    return {
        "one cell": one,
        "one example": [*evaluate, "--expr", f"{flake} outputs.packages.x86_64-linux.relu.drvPath"],
        "all cells of all examples": [*evaluate, "--expr", f"{flake} outputs.packages.x86_64-linux.kernels.drvPath"],
        "why the others are skipped": [*evaluate, "--expr", f"{flake} outputs.skipped.x86_64-linux"],
    }


def bare(kernel: Path, folder: Path) -> list[str]:
    """Return the command that configures and compiles the rendered project, and no more."""
    import torch  # noqa: PLC0415  slow

    project, build = folder / "project", folder / "build"
    prefix = Path(torch.__file__).parent.parent
    render = f'"{sys.executable}" -m builder render "{kernel}" --backend cpu --output "{project}"'
    script = (
        f'rm -rf "{build}" "{project}"; {render} && cmake -S "{project}" -B "{build}" -GNinja '
        f'-DCMAKE_PREFIX_PATH="{prefix}" -DKERNEL_TORCH_DIR="{prefix}/torch" && cmake --build "{build}"'
    )
    return ["env", f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}", "sh", "-ec", script]


def nix_build(kernel: Path) -> list[str]:
    """Return the command of Nix alone."""
    nix = Nix(program="nix", environ=os.environ, processes=Processes(), package_set=HOST)
    options = ("--impure", "--no-link", "--file", str(LIBRARY / "engine.nix"))
    return [
        "nix",
        *nix.options,
        "build",
        *options,
        "--argstr",
        "request",
        request(kernel, [VARIANT]),
        f'cells."{VARIANT}"',
    ]


def sizes(kernel: Path) -> None:
    """Print the size of a cell's output, and of all that its build needs."""
    command = [part for part in nix_build(kernel) if part != "--no-link"]
    command[command.index("build")] = "eval"
    command[-1:] = ["--json", "plan"]
    planned = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[VARIANT]

    def closure(paths: list[str]) -> float:
        argv = ["nix", "--extra-experimental-features", "nix-command", "path-info", "--json", "--recursive", *paths]
        found = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        entries = found.values() if isinstance(found, dict) else found
        return sum(entry["narSize"] for entry in entries) / 2**20

    inputs = subprocess.run(
        ["nix-store", "--query", "--references", planned["drv"]], capture_output=True, text=True, check=True
    ).stdout.split()
    derivations = [path for path in inputs if path.endswith(".drv")]
    outputs = subprocess.run(
        ["nix-store", "--query", "--outputs", *derivations], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"  a cell's output        {closure([planned['out']]):8.2f} MiB")
    print(f"  what its build needs   {closure(outputs):8.0f} MiB (the environment, shared, and builder's own)")


if __name__ == "__main__":
    main()
