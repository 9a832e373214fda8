"""A new kernel builds for the CPU, and its own tests and benchmark run on the installed wheel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builder.wheel.archive import Wheel, unpack

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.slow]


def run(*command, cwd, **environment):
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("framework", ["torch", "torch-noarch", "tvm-ffi"])
def test_a_new_kernel_builds_and_passes_its_own_tests(framework, tmp_path):
    if framework == "tvm-ffi":
        pytest.importorskip("tvm_ffi")
    builder = [sys.executable, "-m", "builder"]
    root = str(Path(__file__).parents[2])
    kernel = tmp_path / "my-kernel"
    run(*builder, "init", kernel, "--framework", framework, "--backends", "cpu", cwd=root)
    run(*builder, "check", "--strict", kernel, cwd=root)
    options = ["--backend", "cpu", "--no-isolation", "--output", tmp_path / "dist", "--store", tmp_path / "store"]
    run(*builder, "build", kernel, *options, cwd=root)
    (path,) = (tmp_path / "dist").glob("my_kernel-1.0.0+*.whl")
    installed = tmp_path / "installed"
    installed.mkdir()
    unpack(Wheel.read(path), installed)
    tested = run(sys.executable, "-m", "pytest", "-q", "tests", cwd=kernel, PYTHONPATH=str(installed))
    assert " passed" in tested
    assert "skipped" not in tested
    assert "cpu " in run(sys.executable, "benchmarks/bench_scale.py", cwd=kernel, PYTHONPATH=str(installed))
