"""One cell of many files on one builder of Nix and on two, each bound to one core: compiled in one, and file by file.

usage: python benchmarks/spread.py [FILES] [--torch]

FILES of C++ in the kernel, by default 12: with headers of the stable ABI, or with --torch those of a classic kernel.

Needs root, Nix and sshd. Each builder has a store of its own on this machine, which has the environments before the
clock runs. The same files are compiled by `builder build --part` into a folder that two processes share.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import paired

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.integration import farm, nix_tools  # noqa: E402

JOBS = 3
"""Derivations at a time on each builder: Nix asks a builder that had no room only five seconds later."""
CONFIG = """\
[general]
name = "many"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch]
src = ["torch-ext/torch_binding.cpp"]
{abi}

[kernel.many]
backend = "cpu"
depends = ["torch"]
src = ["csrc/*.cpp"]
"""
STABLE_BINDING = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include "registration.h"
{declared}
static torch::stable::Tensor many(const torch::stable::Tensor &input) {{
  return {called};
}}
STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {{ ops.def("many(Tensor input) -> Tensor"); }}
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {{ ops.impl("many", TORCH_BOX(&many)); }}
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
STABLE_SOURCE = """\
// {salt}
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <map>
#include <regex>
#include <string>

torch::stable::Tensor step_{number}(const torch::stable::Tensor &input) {{
  static const std::regex words("([a-z]+)_{number}|([0-9]+)");
  std::map<std::string, int> seen;
  seen[std::regex_replace(std::string("step_{number}"), words, "x")] = {number};
  return seen.empty() ? input : torch::stable::empty_like(input);
}}
"""
CLASSIC_BINDING = """\
#include <torch/library.h>
#include "registration.h"
{declared}
static at::Tensor many(const at::Tensor &input) {{
  return {called};
}}
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {{ ops.def("many(Tensor input) -> Tensor"); }}
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {{ ops.impl("many", &many); }}
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
CLASSIC_SOURCE = """\
// {salt}
#include <torch/torch.h>

at::Tensor step_{number}(const at::Tensor &input) {{ return torch::add(input, {number}); }}
"""


@dataclass(frozen=True)
class Kind:
    """What the files of the kernel are."""

    variant: str
    abi: str
    tensor: str
    binding: str
    source: str


STABLE = Kind(
    variant="torch-stable-abi210-cpu-x86_64-linux",
    abi='stable-abi = "2.10"',
    tensor="torch::stable::Tensor",
    binding=STABLE_BINDING,
    source=STABLE_SOURCE,
)
CLASSIC = Kind(
    variant="torch213-cxx11-cpu-x86_64-linux",
    abi="",
    tensor="at::Tensor",
    binding=CLASSIC_BINDING,
    source=CLASSIC_SOURCE,
)


def main() -> None:
    """Print the table."""
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    count = int(numbers[0]) if numbers else 12
    kind = CLASSIC if "--torch" in sys.argv else STABLE
    print(f"{paired.machine()}; load {os.getloadavg()[0]:.1f}; a kernel of {count} files; {kind.variant}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, farm.ssh("/usr/sbin/sshd", Path(name) / "ssh") as ssh:
        folder = Path(name)
        machines = [farm.Machine.make(folder, each, core=core) for core, each in enumerate("ab")]
        kernel = folder / "many"
        for machine in machines:  # the environments: what is here already, Nix has no machine build
            write(kernel, 1, kind)
            nix(kernel, [machine], ssh, kind)
        write(kernel, count, kind)
        show = Table()
        show.row("one builder, compiled in one", nix(kernel, machines[:1], ssh, kind, per_file=False))
        write(kernel, count, kind)
        show.row("one builder, file by file", nix(kernel, machines[:1], ssh, kind))
        write(kernel, count, kind)
        show.row("two builders, file by file", nix(kernel, machines, ssh, kind))
        edit(kernel)
        show.row("one file edited, file by file", nix(kernel, machines, ssh, kind))
        write(kernel, count, kind)
        for text, seconds in parts(kernel, folder, kind, count):
            show.row(text, seconds)


class Table:
    """Rows, each with its share of the first."""

    first = 0.0

    def row(self, text: str, seconds: float) -> None:
        """Print a row."""
        self.first = self.first or seconds
        print(f"| {text} | {seconds:.1f} | {seconds / self.first:.2f} |", flush=True)


def write(kernel: Path, count: int, kind: Kind) -> None:
    """Write the kernel anew, with files that no store has."""
    shutil.rmtree(kernel, ignore_errors=True)
    for folder in ("csrc", "torch-ext/many"):
        (kernel / folder).mkdir(parents=True)
    (kernel / "build.toml").write_text(CONFIG.format(abi=kind.abi))
    (kernel / "torch-ext/many/__init__.py").write_text("from ._ops import ops\n")
    declared = "".join(f"{kind.tensor} step_{n}(const {kind.tensor} &input);\n" for n in range(count))
    called = "".join(f"step_{n}(" for n in range(count)) + "input" + ")" * count
    (kernel / "torch-ext/torch_binding.cpp").write_text(kind.binding.format(declared=declared, called=called))
    for number in range(count):
        (kernel / f"csrc/step_{number}.cpp").write_text(kind.source.format(number=number, salt=secrets.token_hex(8)))


def edit(kernel: Path) -> None:
    """Change one file."""
    source = kernel / "csrc/step_0.cpp"
    source.write_text(f"{source.read_text()}\n// edited\n")


def nix(kernel: Path, machines: Sequence[farm.Machine], ssh: str, kind: Kind, *, per_file: bool = True) -> float:
    """Build on these machines and return the seconds."""
    expression = nix_tools.expression([kernel], kind.variant, **{"per-file": per_file})
    began = time.monotonic()
    done = nix_tools.nix(
        *("build", "-L", "--impure", "--no-link", "--json", "--expr", expression, kernel.name),
        *farm.spread_over(machines, jobs=JOBS),
        env={"NIX_SSHOPTS": ssh},
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return time.monotonic() - began


def parts(kernel: Path, folder: Path, kind: Kind, count: int) -> list[tuple[str, float]]:
    """Build by the local engine on one core, then in parts on two, and return the seconds of each."""
    shared = folder / "shared"
    shared.mkdir()
    options = f"--variant {kind.variant} --jobs 1 --json --output".split()
    command = [sys.executable, "-m", "builder", "build", str(kernel), *options, str(folder / "dist")]

    def run(core: int, *options: str) -> float:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "BUILDER_STORE": str(folder / f"store-{core}")}
        # One folder of environments, and the locks with it.
        for name in ("environments", "locks"):
            (folder / name).mkdir(exist_ok=True)
            (folder / f"store-{core}").mkdir(exist_ok=True)
            if not (folder / f"store-{core}" / name).exists():
                (folder / f"store-{core}" / name).symlink_to(folder / name)
        began = time.monotonic()
        done = subprocess.run(
            ["taskset", "-c", str(core), *command, *options], env=env, check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return time.monotonic() - began

    run(0, "--no-cache")  # the environment
    alone = run(0, "--no-cache", "--rebuild")
    write(kernel, count, kind)  # else the first store has the wheel
    giving = ("--cache", str(shared), "--cache-access", "read-write")
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: run(each[0], *giving, "--part", each[1]), ((0, "1/2"), (1, "2/2"))))
    run(1, *giving, "--rebuild")
    return [("builder build on one core", alone), ("--part on two cores, then the wheel", time.monotonic() - began)]


if __name__ == "__main__":
    main()
