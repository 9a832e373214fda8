"""Which cells a machine can build: as they are, for another system, or without loading them."""

import json
import os
import re
from pathlib import Path

import pytest

from builder import cli, kernel, matrix, toolchain
from builder.environment import interpreters
from builder.plan import buildable
from builder.plan.ask import Ask, KernelBuild
from builder.store import Store
from tests import needs
from tests.given.planning import compilers
from tests.paths import ROOT

RELU = ROOT / "examples/relu"
ROWS = tuple(row for row in matrix.rows() if row.set in ("release", "legacy") and row.variant is not None)


@pytest.fixture(autouse=True)
def _debian_12(monkeypatch):
    """Let this be a machine of x86_64 whose only Python is 3.11."""
    here = interpreters.Interpreter(path=Path("/usr/bin/python3.11"), tag="cp311")
    monkeypatch.setattr(interpreters, "running", lambda: here)
    monkeypatch.setattr(interpreters, "find", lambda *_, **__: None)
    monkeypatch.setattr(toolchain, "system", lambda: "x86_64-linux")


@pytest.fixture
def here(tmp_path):
    """Return variables with a PATH that has compilers for this machine alone."""
    return {"PATH": compilers(tmp_path / "bin", "g++", "gcc"), "HOME": str(tmp_path)}


@pytest.fixture
def both(tmp_path, here):
    """Return the same with a compiler for aarch64."""
    compilers(tmp_path / "bin", "aarch64-linux-gnu-g++")
    return here


def supported(environ):
    return {support.variant: support for support in buildable.row_support(ROWS, environ)}


def test_cells_of_another_system_count_with_the_compiler_for_it_and_name_the_option(both):
    found = supported(both)
    assert found["torch213-cxx11-cpu-aarch64-linux"].how == "with --system aarch64-linux, and are not loaded"
    assert found["torch213-cxx11-cu130-aarch64-linux"].missing is None
    found = supported(both | {"PATH": "/nonexistent"})
    assert all(support.missing for support in found.values())
    lacking = found["torch213-cxx11-cpu-aarch64-linux"]
    assert "looked for aarch64-linux-gnu-g++" in lacking.missing
    assert "builder matrix --system aarch64-linux" in lacking.help


def test_cuda_of_the_machine_is_for_its_own_system(both):
    assert supported(both)["torch213-cxx11-cu126-aarch64-linux"].missing == "no CUDA 12.6 for aarch64-linux"


def test_cells_whose_python_is_missing_count_and_say_that_they_are_not_loaded(here):
    found = supported(here)
    lacking = found["torch212-cxx11-cpu-x86_64-linux"]
    assert lacking.missing is None
    assert lacking.how == "and are not loaded, for lack of Python 3.13 (uv python install 3.13)"
    assert found["torch213-cxx11-cpu-x86_64-linux"].how == ""


def test_no_cell_of_a_kernel_is_skipped_for_a_python(both):
    assert not [support for support in supported(both).values() if "no Python" in (support.missing or "")]


def test_the_cells_of_a_kernel_are_counted_as_a_build_would_find_them(both, tmp_path):
    loaded = kernel.load(ROOT / "examples/relu-tvm-ffi")
    cells = matrix.select(loaded.config, ROWS)
    ask = Ask(
        store=Store(tmp_path / "store"),
        output=tmp_path,
        environ=both,
    )
    support = buildable.cell_support(KernelBuild(kernel=loaded, cells=cells, ask=ask))
    found = {each.variant for each in support if each.missing is None}
    assert {"tvm-ffi01-cpu-x86_64-linux", "tvm-ffi01-cpu-aarch64-linux"} <= found
    assert "tvm-ffi01-cpu-aarch64-darwin" not in found
    assert "tvm-ffi01-cu126-aarch64-linux" not in found
    assert not (tmp_path / "store").exists()


@needs.only_with("g++")
def test_the_explained_matrix_ends_with_the_count(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", os.defpath)
    assert cli.run(["matrix", str(RELU), "--backend", "cpu", "--explain", "--store", str(tmp_path / "store")]) == 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert " of 9 cells can be built here: `builder doctor DIR` says what others lack" in said


def test_doctor_counts_them_in_one_line_for_each_way(tmp_path, capsys, monkeypatch, both):
    for name, value in both.items():
        monkeypatch.setenv(name, value)
    assert cli.run(["doctor", "--store", str(tmp_path / "store")]) == 0
    shown = capsys.readouterr().out
    assert "6 cells can be built here with --system aarch64-linux, and are not loaded" in shown
    assert "ok  C++, aarch64-linux" in shown
    assert not re.search(r"^ok  1 cell .*and are not", shown, re.MULTILINE)
    assert cli.run(["doctor", "--json", "--store", str(tmp_path / "store")]) == 0
    cells = {cell["variant"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert cells["torch213-cxx11-cpu-aarch64-linux"]["how"].startswith("with --system aarch64-linux")
