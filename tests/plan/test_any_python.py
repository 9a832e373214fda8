"""Pins of any Python serve a kernel that needs nothing of Python: no cell is skipped for one that is not here."""

import shutil
from pathlib import Path

import pytest

from builder.environment import interpreters
from builder.errors import NotHereError
from builder.make.job import loader_of
from builder.pins import PinnedWheel
from tests.given.cells import cell_in
from tests.given.planning import planner
from tests.paths import ROOT

RELU = ROOT / "examples/relu"
CELL = cell_in(RELU, variant="torch212-cxx11-cpu-x86_64-linux")
"""Its torch is pinned for Python 3.13 alone."""


@pytest.fixture(autouse=True)
def _python_of_debian_12(monkeypatch):
    """Let the only Python be 3.11."""
    here = interpreters.Interpreter(path=Path("/usr/bin/python3.11"), tag="cp311")
    monkeypatch.setattr(interpreters, "running", lambda: here)
    monkeypatch.setattr(interpreters, "find", lambda *_, **__: None)


@pytest.fixture(autouse=True)
def _on_x86(monkeypatch):
    monkeypatch.setattr("builder.toolchain.system", lambda: "x86_64-linux")


def test_the_environment_is_of_the_python_that_is_here_with_the_torch_of_another(tmp_path):
    engine = planner(RELU, tmp_path)
    wanted = engine.spec(CELL).environment.pins
    assert (engine.maker(wanted.python), wanted.python) == (Path("/usr/bin/python3.11"), "cp311")
    assert wanted["torch"].file == "torch-2.12.0+cpu-cp313-cp313-manylinux_2_28_x86_64.whl"
    assert {wheel.python for wheel in wanted.wheels} == {None, "cp311", "cp313"}
    assert wanted.other_pythons == ("cp313",)


def test_the_load_test_says_which_python_is_lacking_and_how_to_get_it(tmp_path):
    reason = loader_of(planner(RELU, tmp_path).spec(CELL), {})
    assert reason.reason == "its torch is pinned for Python 3.13 alone"
    assert reason.help == "uv python install 3.13, and build it again"


def test_a_python_that_nothing_is_pinned_for_still_runs_cmake(tmp_path, monkeypatch):
    newest = interpreters.Interpreter(path=Path("/usr/bin/python3.19"), tag="cp319")
    monkeypatch.setattr(interpreters, "running", lambda: newest)
    wanted = planner(RELU, tmp_path).spec(CELL).environment.pins
    assert wanted.python == "cp319"
    assert wanted["cmake"].python is None


def test_a_kernel_that_includes_headers_of_python_waits_for_the_python_of_its_pins(tmp_path):
    shutil.copytree(RELU, tmp_path / "kernel")
    source = next((tmp_path / "kernel/torch-ext").glob("*.cpp"))
    source.write_text("#include <Python.h>\n" + source.read_text())
    with pytest.raises(NotHereError, match=r"no Python that has pins .* needs 3\.13"):
        planner(tmp_path / "kernel", tmp_path).spec(CELL)


@pytest.mark.parametrize(
    ("file", "python"),
    [
        ("torch-2.12.0+cpu-cp313-cp313-manylinux_2_28_x86_64.whl", "cp313"),
        ("torch-2.12.0+cpu-cp313-cp313t-manylinux_2_28_x86_64.whl", "cp313t"),
        ("ninja-1.13.2-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", None),
        ("thing-1.0-cp39-abi3-manylinux_2_28_x86_64.whl", None),
    ],
)
def test_a_wheel_tells_the_one_python_that_can_import_it(file, python):
    assert PinnedWheel(file=file, name="", version="", sha256="").python == python


def test_a_toolkit_that_is_missing_is_said_before_anything_is_fetched(tmp_path):
    cell = cell_in(RELU, variant="torch212-cxx11-rocm71-x86_64-linux")
    with pytest.raises(NotHereError, match="ROCm"):
        planner(RELU, tmp_path).spec(cell)
