"""A C++ compiler that is too new for the nvcc of a cell: told before anything is fetched, and by the doctor."""

import pytest

from builder import kernel, toolchain
from builder.cli import run
from builder.errors import NotHereError
from builder.plan.ask import Ask
from builder.plan.planner import Planner
from builder.store import Store
from tests.given.cells import cell_in
from tests.paths import ROOT

KERNEL = ROOT / "examples/relu-tvm-ffi"

pytestmark = pytest.mark.skipif(toolchain.system() != "x86_64-linux", reason="nvcc is pinned for x86_64-linux")


@pytest.fixture
def newest(tmp_path):
    """Return a g++ 16."""
    path = tmp_path / "g++"
    path.write_text("#!/bin/sh\necho 'g++ (Debian 16.1.0-2) 16.1.0'\n")
    path.chmod(0o755)
    return str(path)


def request(tmp_path, compiler, cell):
    store = Store(tmp_path / "store")
    store.prepare()
    environ = {"PATH": "/usr/bin:/bin", "CXX": compiler, "HOME": str(tmp_path)}
    ask = Ask(store=store, output=tmp_path, environ=environ)
    return Planner(kernel=kernel.load(KERNEL), ask=ask, step=lambda _cell, _text: None).spec(cell)


def test_a_cell_whose_nvcc_takes_no_such_compiler_is_refused_before_anything_is_fetched(tmp_path, newest):
    with pytest.raises(NotHereError, match=r"nvcc of CUDA 13\.0 takes g\+\+ up to 15, and '.*' is 16"):
        request(tmp_path, newest, cell_in(KERNEL, backend="cuda", toolkit="13.0", system="x86_64-linux"))
    request(tmp_path, newest, cell_in(KERNEL, backend="cpu", system="x86_64-linux"))


def test_the_doctor_counts_such_a_cell_among_those_that_cannot_be_built(tmp_path, newest, monkeypatch, capsys):
    monkeypatch.setenv("CXX", newest)
    run(["doctor", str(KERNEL), "--store", str(tmp_path / "store")])
    said = " ".join(capsys.readouterr().out.split())
    assert "nvcc of CUDA 13.0 takes g++ up to 15" in said
    assert "set CXX=g++-15 where that is installed, or pass --toolchain pinned" in said
