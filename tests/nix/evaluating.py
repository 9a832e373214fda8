"""Evaluate the Nix library for tests, with their kernels and pins."""

import json
import subprocess

from builder import pins
from tests.paths import ROOT, TESTS

NIX = TESTS / "nix"
TINY = TESTS / "data/kernels/tiny"
TINY_CELL = "torch-stable-abi210-cpu-x86_64-linux"
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/build.toml"))
KNOWN = pins.load()


def evaluate(file, attribute=None, **arguments):
    options = [text for name, value in arguments.items() for text in ("--argstr", name, json.dumps(value))]
    attributes = () if attribute is None else ("-A", attribute)
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", str(file), *attributes, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def library(attribute, **asked):
    return evaluate(NIX / "library.nix", attribute, asked=asked)
