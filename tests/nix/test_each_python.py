"""Cells for one Python in Nix: the same as in Python, each with the environment of its own Python."""

import json

import pytest

from builder import kernel
from builder.make.job import Spec
from builder.matrix import rows, select
from tests import needs
from tests.nix.evaluating import library

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]

BUILD = """
[general]
name = "each"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]

[torch]
src = ["binding.cpp"]
python-abi = "cpython"

[kernel.part]
backend = "cpu"
depends = ["torch"]
src = ["part.cpp"]
"""
NAME = "torch213-cxx11-cpu-x86_64-linux"


@pytest.fixture
def each(tmp_path):
    root = tmp_path / "each"
    (root / "torch-ext/each").mkdir(parents=True)
    for path in ("torch-ext/each/__init__.py", "binding.cpp", "part.cpp"):
        (root / path).touch()
    (root / "build.toml").write_text(BUILD, encoding="utf-8")
    return root


def test_the_spec_of_nix_is_of_the_cell_that_python_has(each):
    (found,) = library("specs", kernel=str(each), variants=[f"{NAME}-cp311"], options={})
    spec = Spec.from_json(found)
    cells = select(kernel.load(each).config, rows())
    assert spec.cell == next(cell for cell in cells if cell.variant == f"{NAME}-cp311")
    assert spec.environment.pins.python == spec.cell.python == "cp311"
    assert json.loads(spec.to_json())["cell"]["python"] == "cp311"


def test_a_python_that_the_package_set_lacks_is_named(each):
    with pytest.raises(ValueError, match=r"for Python 3\.12 with a Python of the package set"):
        library("derivations", kernel=str(each), variants=[f"{NAME}-cp312"])


def test_a_python_without_pins_is_named(each):
    with pytest.raises(ValueError, match=r"no wheels are pinned for torch 2\.13 cpu on x86_64-linux, for Python 3\.10"):
        library("derivations", kernel=str(each), variants=[f"{NAME}-cp310"])
