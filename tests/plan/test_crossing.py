"""Cells of another system: compiled where they are asked for and can be, and else refused with what is lacking."""

import shutil
from dataclasses import replace

import pytest

from builder import kernel, pins, toolchain
from builder.config import LoadTestRule
from builder.errors import NotHereError
from builder.loadtest.load_outcome import LoadState
from builder.make import load
from builder.make.framework import FrameworkIdentity
from builder.make.job import Job, PinnedPackages, Spec, with_load_test
from builder.make.workplace import Workplace, cross_defines
from builder.pins import PinSet, Requirement
from builder.plan import crossing
from tests.given.cells import cell_in
from tests.given.planning import compilers, planner
from tests.paths import ROOT

RELU = ROOT / "examples/relu"
TVM_FFI = ROOT / "examples/relu-tvm-ffi"
PYTHON = "cp311"


@pytest.fixture(autouse=True)
def _on_x86(monkeypatch):
    """Let this machine be one of x86_64-linux."""
    monkeypatch.setattr(toolchain, "system", lambda: "x86_64-linux")


@pytest.fixture
def compiler(tmp_path):
    """Return a PATH with a cross compiler."""
    return compilers(tmp_path / "bin", "aarch64-linux-gnu-g++")


OTHER = {"sets": ("release",), "backend": "cpu", "system": "aarch64-linux"}
"""A cell that another system is built for."""


def test_a_cell_that_is_asked_for_is_prepared_with_programs_of_this_machine_alone(tmp_path, compiler):
    engine = planner(TVM_FFI, tmp_path, path=compiler, crosses=True)
    wanted = engine.spec(cell_in(TVM_FFI, **OTHER)).environment.pins
    assert wanted.system == "aarch64-linux"
    for name in ("cmake", "ninja"):
        assert wanted[name].file.endswith("_x86_64.whl")
    for name in ("apache-tvm-ffi", "numpy"):
        assert wanted[name].file.endswith("_aarch64.whl")


def test_nvcc_is_of_this_machine_and_the_cuda_runtime_of_the_other():
    known, cell = pins.load(), cell_in(RELU, sets=("release",), backend="cuda", system="aarch64-linux")
    cell = replace(cell, compute="cu130", toolkit="13.0")
    requirement = Requirement.of(cell, PYTHON)
    files = {
        wheel.name: wheel.file
        for wheel in crossing.environment(known, known.environment(requirement), requirement, cell).wheels
    }
    assert files["nvidia-cuda-nvcc"].endswith("x86_64.whl")
    assert files["nvidia-nvvm"].endswith("x86_64.whl")
    assert files["nvidia-cuda-runtime"].endswith("aarch64.whl")
    assert files["torch"].endswith("aarch64.whl")


def test_a_toolkit_that_is_not_pinned_is_only_for_the_machine_that_has_it():
    cell = replace(
        cell_in(RELU, sets=("release",), backend="cuda", system="aarch64-linux"), compute="cu126", toolkit="12.6"
    )
    with pytest.raises(NotHereError, match="nvidia-cuda-nvcc is not pinned for x86_64-linux"):
        crossing.environment(pins.load(), PinSet(PYTHON, cell.system, ()), Requirement.of(cell, PYTHON), cell)


@pytest.mark.parametrize(
    ("wanted", "asked", "said"),
    [
        ({}, {"crosses": False}, "this one is x86_64-linux, where --system aarch64-linux compiles it"),
        ({}, {"path": ""}, r"no C\+\+ compiler for aarch64-linux.*install.*aarch64"),
        ({}, {"isolation": False}, "--no-isolation builds for what is installed here"),
        ({"system": "aarch64-darwin"}, {}, "needs a machine of aarch64-darwin; this one is x86_64-linux\n"),
    ],
    ids=["not asked for", "no compiler", "without isolation", "a Mac"],
)
def test_a_cell_that_is_not_compiled_here_is_refused_with_what_helps(tmp_path, compiler, wanted, asked, said):
    ask = planner(TVM_FFI, tmp_path, **{"path": compiler, "crosses": True, **asked}).ask
    with pytest.raises(NotHereError, match=said):
        crossing.require(cell_in(TVM_FFI, **OTHER | wanted), ask)


def test_a_kernel_that_includes_headers_of_python_is_refused(tmp_path, compiler):
    root = tmp_path / "kernel"
    shutil.copytree(RELU, root)
    source = next(root.glob("torch-ext/*.cpp"))
    source.write_text("#include <Python.h>\n" + source.read_text())
    with pytest.raises(NotHereError, match="includes headers of Python, and this machine has none for aarch64-linux"):
        planner(root, tmp_path, path=compiler, crosses=True).spec(cell_in(root, **OTHER))


def job_of(tmp_path, cell):
    return Job(
        spec=Spec(
            kernel=TVM_FFI,
            cell=cell,
            environment=PinnedPackages(path=tmp_path, pins=PinSet(PYTHON, "aarch64-linux", ())),
        ),
        kernel=kernel.load(TVM_FFI),
        project=None,
        framework=FrameworkIdentity(name="tvm_ffi", version=""),
        toolchain=None,
        environ={"PATH": str(tmp_path)},
    )


def test_cmake_is_told_of_the_other_system_and_a_native_build_is_told_nothing(tmp_path):
    given = cross_defines(job_of(tmp_path, cell_in(TVM_FFI, **OTHER)), roots=(tmp_path,))
    assert (given["CMAKE_SYSTEM_NAME"], given["CMAKE_SYSTEM_PROCESSOR"]) == ("Linux", "aarch64")
    assert given["CMAKE_FIND_ROOT_PATH"] == str(tmp_path)
    native = cell_in(TVM_FFI, **OTHER | {"system": "x86_64-linux"})
    assert cross_defines(job_of(tmp_path, native), roots=(tmp_path,)) == {}


def test_a_wheel_of_another_system_is_marked_as_not_loaded_and_is_not_refused(tmp_path):
    job = with_load_test(job_of(tmp_path, cell_in(TVM_FFI, **OTHER)))
    outcome = load.test(Workplace(job=job, scratch=tmp_path, log=tmp_path / "log", listen=print), None, early=None)
    assert outcome.outcome is LoadState.NOT_TESTED
    assert outcome.words == "not tested: it was compiled on x86_64-linux, where no qemu-aarch64 is on PATH"
    outcome.require(LoadTestRule.REQUIRE)
    assert outcome.answers(LoadTestRule.REQUIRE), "a build of the same wheel is a hit"
