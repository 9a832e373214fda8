"""A cold process of each command against bare Python and the `kernels` client: run with the tests' interpreter.

usage: python benchmarks/startup.py [RUNS]
"""

import os
import sys
from pathlib import Path

import paired

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    builder = str(BIN / "builder")
    kernel = str(ROOT / "examples/relu")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "builder --help": [builder, "--help"],
        "builder matrix": [builder, "matrix", kernel],
        "builder render, one backend": [builder, "render", kernel, "--backend", "cpu"],
        "kernels --help": [str(BIN / "kernels"), "--help"],
    }
    # Bytecode is written as for a user; the environment of some test runs forbids it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    print(paired.machine())
    paired.table(paired.run(commands, runs=runs, warmups=2, env=env), peer="python -c pass")


main()
