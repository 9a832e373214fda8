"""A C++ compiler that is too new for the nvcc of a cell: told before anything is fetched, and by the doctor."""

import pytest

from builder import toolchain
from builder.cli import run
from builder.errors import NotHereError
from tests.given.cells import cell_in
from tests.given.files import program
from tests.given.planning import planner
from tests.paths import ROOT

KERNEL = ROOT / "examples/relu-tvm-ffi"

pytestmark = pytest.mark.skipif(toolchain.system() != "x86_64-linux", reason="nvcc is pinned for x86_64-linux")


@pytest.fixture
def newest(tmp_path):
    """Return a g++ 16."""
    return str(program(tmp_path / "g++", "#!/bin/sh\necho 'g++ (Debian 16.1.0-2) 16.1.0'\n"))


def test_a_cell_whose_nvcc_takes_no_such_compiler_is_refused_before_anything_is_fetched(tmp_path, newest):
    engine = planner(KERNEL, tmp_path, environ={"CXX": newest})
    with pytest.raises(NotHereError, match=r"nvcc of CUDA 13\.0 takes g\+\+ up to 15, and '.*' is 16"):
        engine.spec(cell_in(KERNEL, backend="cuda", toolkit="13.0", system="x86_64-linux"))
    engine.spec(cell_in(KERNEL, backend="cpu", system="x86_64-linux"))


def test_the_doctor_counts_such_a_cell_among_those_that_cannot_be_built(tmp_path, newest, monkeypatch, capsys):
    monkeypatch.setenv("CXX", newest)
    run(["doctor", str(KERNEL), "--store", str(tmp_path / "store")])
    said = " ".join(capsys.readouterr().out.split())
    assert "nvcc of CUDA 13.0 takes g++ up to 15" in said
    assert "set CXX=g++-15 where that is installed, or pass --toolchain pinned" in said
