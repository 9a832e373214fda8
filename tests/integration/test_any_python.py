"""A kernel is compiled with the wheels of a Python that this machine lacks."""

import json
import sys

import pytest

from builder import cli
from builder.environment import interpreters
from builder.pins import pin_file
from tests.paths import ROOT

pytestmark = [pytest.mark.cmake, pytest.mark.network, pytest.mark.slow]
HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture
def _pinned_elsewhere(monkeypatch):
    """Let tvm-ffi be pinned for Pythons that are not here."""
    read = pin_file.read

    def without(file):
        table = read(file)
        (part,) = (part for part in table["part"] if part["name"] == "tvm-ffi")
        for of_system in part["wheels"].values():
            of_system.pop(HERE, None)
        return table

    monkeypatch.setattr(pin_file, "read", without)
    monkeypatch.setattr(interpreters, "find", lambda *_, **__: None)


@pytest.mark.usefixtures("_pinned_elsewhere")
def test_a_cell_that_is_pinned_for_other_pythons_is_compiled_and_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = ROOT / "examples/relu-tvm-ffi"
    named = ("--variant", "tvm-ffi01-cpu-x86_64-linux", "--store", str(tmp_path / "store"), "-q")
    assert cli.run(["build", str(kernel), *named]) == 0
    (record,) = (tmp_path / "dist").glob("*.record.json")
    said = json.loads(record.read_text())["load-test"]
    assert said["outcome"] == "not-tested"
    assert said["reason"].startswith("its tvm-ffi is pinned for Python 3.")
    assert said["help"].startswith("uv python install 3.")
