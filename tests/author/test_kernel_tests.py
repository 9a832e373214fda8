"""The choices and refusals of `builder test`, before anything is built."""

import venv
from pathlib import Path

import pytest

from builder import kernel, matrix
from builder.author import tests as kernel_tests
from builder.cli import run
from builder.config import Backend, Framework
from builder.errors import ToolError
from builder.plan.dry_run import DryRun
from builder.toolchain.this_machine import CurrentPython
from tests.given.files import write
from tests.paths import ROOT

RELU = ROOT / "examples" / "relu"


def plans(possible):
    """Plan the cells of an example, of which those of some variants can be built."""
    cells = matrix.select(kernel.load(RELU).config, [row for row in matrix.rows() if row.set == "release"])
    return [
        DryRun(
            cell=cell, action="build" if cell.variant in possible else "skip", reason=f"no {cell.variant}\n  help: -"
        )
        for cell in cells
    ]


@pytest.mark.parametrize(
    ("example", "needed"),
    [("relu", "'torch==2.15.*'"), ("silu-and-mul", "'torch==2.15.*'"), ("relu-tvm-ffi", "apache-tvm-ffi")],
)
def test_a_python_without_anything_is_told_the_one_command_before_anything_is_built(tmp_path, example, needed):
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare/bin/python"
    config = kernel.load(RELU.parent / example).config
    with pytest.raises(ToolError) as caught:
        kernel_tests.require(
            matrix.select(config, matrix.rows()), CurrentPython(python=python, torch=None, tvm_ffi=None)
        )
    assert "has no " in caught.value.message
    assert caught.value.message.endswith("and no pytest")
    assert caught.value.help.endswith(f"{python} -m pip install {needed} pytest")


def test_the_device_that_torch_is_built_for_comes_before_cpu():
    cpu, cuda = "torch213-cxx11-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"
    order = (Backend.CUDA, Backend.CPU)
    assert kernel_tests.choose(plans({cpu, cuda}), order).cell.variant == cuda
    assert kernel_tests.choose(plans({cpu}), order).cell.variant == cpu


def test_where_no_cell_fits_each_reason_is_given():
    with pytest.raises(ToolError) as caught:
        kernel_tests.choose(plans(set()), (Backend.CPU,))
    assert "\n  no torch213-cxx11-cpu-x86_64-linux" in caught.value.message
    assert "cu130" not in caught.value.message


def test_a_kernel_without_a_cell_for_what_is_installed_says_so():
    with pytest.raises(ToolError, match="no cell for what is installed, which runs tpu"):
        kernel_tests.choose(plans(set()), (Backend.TPU,))


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        pytest.param(("cuda = None", "hip = None"), Backend.METAL, id="cpu"),
        pytest.param(("cuda: str = '13.0'",), Backend.CUDA, id="cuda"),
        pytest.param(("cuda = None", "hip = '7.2.1'"), Backend.ROCM, id="rocm"),
    ],
)
def test_what_torch_is_built_for_is_read_from_its_files(tmp_path, lines, first):
    write(tmp_path, {"torch/version.py": "\n".join(("__version__ = '2.13.0'", *lines))})
    found = CurrentPython(python=Path("python"), torch=tmp_path, tvm_ffi=None)
    order = kernel_tests.backends(Framework.TORCH, found)
    assert order[0] is first
    assert order[-1] is Backend.CPU


@pytest.mark.parametrize("files", [(), ("tests/helper.py",)], ids=["no folder", "no test in it"])
def test_a_kernel_without_tests_is_refused(tmp_path, capsys, files):
    (tmp_path / "build.toml").write_text((RELU / "build.toml").read_text())
    for name in files:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert run(["test", str(tmp_path)]) == 2
    assert f"no tests in '{tmp_path / 'tests'}'" in capsys.readouterr().err
