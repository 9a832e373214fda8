from pathlib import Path

import pytest

from builder import kernel
from builder.config import Backend, Framework, Version
from builder.make import variables
from builder.make.framework import FrameworkIdentity
from builder.make.job import Job
from builder.make.spec import InstalledPackages, Spec
from builder.matrix import Cell
from builder.render.project import Project
from builder.toolchain import Tool, Toolchain
from tests.paths import ROOT

SERVER = {"MAKEFLAGS": " -j8 --jobserver-auth=fifo:/x"}
CELL = Cell(
    variant="torch-stable-abi210-cu130-x86_64-linux",
    framework=Framework.TORCH,
    backend=Backend.CUDA,
    system="x86_64-linux",
    torch=Version("2.13"),
    toolkit="13.0",
    compute="cu130",
    stable_abi=Version("2.10"),
    tvm_ffi=None,
    bundle=True,
    set="release",
)


def tool(version):
    return Tool(path=Path("/usr/bin/true"), version=version, digest="0")


def job(*, nvcc=None, sources=1, **values):
    cuda = None if nvcc is None else tool(nvcc)
    installed = InstalledPackages(python=Path("/python"), site_packages=Path("/site-packages"))
    return Job(
        spec=Spec(kernel=ROOT / "tests/data/kernels/tiny", cell=CELL, environment=installed),
        kernel=kernel.load(ROOT / "tests/data/kernels/tiny"),
        project=Project({"a.cpp": b"", **{f"{number}.cu": b"" for number in range(sources)}}),
        framework=FrameworkIdentity(name="torch", version="2.13.0"),
        toolchain=Toolchain(cxx=tool("12"), cc=tool("12"), cuda=cuda),
        **values,
    )


def test_ninja_is_left_to_the_jobserver_where_there_is_one():
    assert variables.of_cores(job(cores=8, jobserver=SERVER)) == SERVER
    assert variables.of_cores(job(cores=3)) == {"CMAKE_BUILD_PARALLEL_LEVEL": "3"}
    assert variables.of_cores(job()) == {}


@pytest.mark.parametrize(
    ("nvcc", "sources", "jobserver", "threads"),
    [
        ("13.0.88", 1, SERVER, 8),
        ("13.0.88", 100, SERVER, 8),
        ("12.9.86", 1, SERVER, 8),
        ("12.9.86", 3, SERVER, 2),
        ("12.9.86", 100, SERVER, 1),
        ("13.0.88", 3, {}, 2),
    ],
)
def test_nvcc_compiles_as_many_architectures_at_once_as_there_are_cores_for(nvcc, sources, jobserver, threads):
    assert variables.nvcc_threads(job(nvcc=nvcc, sources=sources, cores=8, jobserver=jobserver)) == threads


def test_an_nvcc_that_knows_a_jobserver_is_told_to_ask_it():
    assert variables.of_cores(job(nvcc="13.0.88", cores=8, jobserver=SERVER))["NVCC_APPEND_FLAGS"] == "--jobserver"
    assert "NVCC_APPEND_FLAGS" not in variables.of_cores(job(nvcc="12.9.86", cores=8, jobserver=SERVER))
    assert "NVCC_APPEND_FLAGS" not in variables.of_cores(job(nvcc="13.0.88", cores=8))


def test_without_a_number_of_cores_nvcc_compiles_one_architecture_after_the_other():
    assert variables.nvcc_threads(job(nvcc="13.0.88")) == 1
