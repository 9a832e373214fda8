"""Compile errors of a known cause: said once, with what takes the place of what is gone."""

import pytest

from builder.config.values import Version
from builder.make import advice, workplace
from builder.run import Completed

PTXAS = """[1/3] Building CUDA object CMakeFiles/x.dir/csrc/a.cu.o
FAILED: [code=255] CMakeFiles/x.dir/csrc/a.cu.o
/usr/local/bin/nvcc -c csrc/a.cu
ptxas /tmp/a.ptx, line 30; error   : Feature 'cp.async' requires .target sm_80 or higher
ptxas /tmp/a.ptx, line 33; error   : Feature 'cp.async' requires .target sm_80 or higher
ptxas /tmp/a.ptx, line 36; error   : Feature 'cp.async.wait_all' requires .target sm_80 or higher
ptxas fatal   : Ptx assembly aborted due to errors
"""
WGMMA = "ptxas /tmp/b.ptx, line 23; error   : Instruction 'wgmma.fence' not supported on .target 'sm_90'\n"


def failed(output, folder, toolkit="13.0"):
    done = Completed(returncode=1, output=output, peak=0)
    return workplace.compile_error("torch213-cu130", done, folder / "log", kills=0, toolkit=toolkit)


def test_a_capability_that_code_needs_is_said_once_with_the_list_that_works(tmp_path):
    error = failed(PTXAS, tmp_path)
    said = "csrc/a.cu: 'cp.async', 'cp.async.wait_all' needs capability 8.0 or higher (3 lines of ptxas)"
    assert error.message == f"torch213-cu130: the build failed\n{said}"
    assert error.help.startswith('write cuda-capabilities = ["8.0", "8.6", ')
    assert "7.5" not in error.help


def test_code_for_one_gpu_alone_is_told_by_its_suffix(tmp_path):
    error = failed(WGMMA, tmp_path)
    assert "'wgmma.fence' is not in code for 9.0, which later GPUs run, too (1 line of ptxas)" in error.message
    assert 'cuda-capabilities = ["9.0a"]' in error.help


def test_an_error_of_the_source_comes_before_what_ptxas_says(tmp_path):
    error = failed(f"{PTXAS}csrc/b.cpp:3:1: error: 'x' was not declared\n", tmp_path)
    assert "csrc/b.cpp:3:1: error: 'x' was not declared" in error.message
    assert "cuda-capabilities" not in error.help


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (
            'a.cu(64): error: no conversion from "const at::DeprecatedTypeProperties" to "c10::ScalarType" exists',
            "x.scalar_type()",
        ),
        (
            "a.cpp:9:3: error: cannot convert 'at::DeprecatedTypeProperties' to 'c10::ScalarType' in initialization",
            "x.scalar_type()",
        ),
        ("a.cu:3:10: fatal error: THC/THC.h: No such file or directory", "<ATen/cuda/CUDAContext.h>"),
        ("a.cu:3:10: fatal error: THC/THCAtomics.cuh: No such file or directory", "<ATen/cuda/Atomic.cuh>"),
        ('a.cu(5): error: identifier "THCState" is undefined', "<ATen/cuda/CUDAContext.h>"),
        ("a.cpp:5:3: error: 'AT_CHECK' was not declared in this scope", "TORCH_CHECK"),
        ('a.cu(5): error: identifier "AT_CHECK" is undefined', "TORCH_CHECK"),
    ],
)
def test_what_torch_no_longer_has_is_named_with_what_takes_its_place(tmp_path, line, instead):
    error = failed(f"[1/2] Building\n{line}\n", tmp_path)
    assert line in error.message
    assert f"write {instead}" in error.help
    assert error.help.endswith(f"the whole log: {tmp_path / 'log'}")


def test_a_torch_that_still_has_it_is_named_where_one_can_be_built_for():
    line = "a.cpp:5:3: error: 'AT_CHECK' was not declared in this scope"
    said = advice.of_torch([line], [Version("1.3"), Version("1.4"), Version("2.13")])
    end = "write TORCH_CHECK, or build for the newest torch that has it: --set all --torch 1.4"
    assert said == f"torch 1.5 and later are without AT_CHECK: {end}"
    assert "no torch of the matrix is older: write TORCH_CHECK" in advice.of_torch([line], [Version("2.13")])


@pytest.mark.parametrize(
    "line", ["a.cpp:1:1: error: 'THIS' was not declared", "a.cpp:1:2: fatal error: MATH/a.h: none"]
)
def test_other_errors_get_no_advice(line):
    assert advice.of_torch([line]) is None
    assert advice.of_ptxas([line], "13.0") is None
