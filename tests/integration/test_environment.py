"""The pinned environments themselves, from the index and the find-links folders of this machine."""

import functools
import os
import re
import subprocess
import sys

import pytest

from builder import pins, toolchain
from builder.config import Framework, Version
from builder.environment import indexes, interpreters, pinned
from builder.environment.fetch import Installer
from builder.matrix import architectures
from builder.toolchain import cuda_wheels

pytestmark = [pytest.mark.network, pytest.mark.slow]

TOOLKITS = sorted(part.compute[0] for part in pins.load().parts if part.name == "toolkit" and part.wheels)
"""The CUDA toolkits that are pinned, with and without rows of the matrix."""
TINY = {
    "CMakeLists.txt": """\
        cmake_minimum_required(VERSION 3.26)
        project(tiny LANGUAGES CXX CUDA)
        find_package(CUDAToolkit REQUIRED)
        add_library(tiny SHARED tiny.cu)
        target_link_libraries(tiny PRIVATE CUDA::cudart)
        """,
    "tiny.cu": """\
        #include <cub/block/block_reduce.cuh>
        #include <cuda/std/cstdint>
        __global__ void twice(float* x) { x[threadIdx.x] *= 2; }
        extern "C" int run(float* x) { twice<<<1, 32>>>(x); return cudaGetLastError(); }
        """,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def make(store, **wanted):
    """Make the environment of a requirement with a Python of this machine."""
    known = pins.load()
    settings = indexes.read(os.environ)
    defaults = {"framework": Framework.TORCH, "version": "2.13", "compute": "cpu", "system": toolchain.system()}
    requirement = pins.Requirement(python="", **{**defaults, **wanted})
    search = functools.partial(interpreters.find, finders=settings)
    python = interpreters.interpreter_for(known, requirement, search=search)
    pinset = known.environment(pins.Requirement(**{**defaults, **wanted}, python=python.tag))
    return pinned.make(pinset, store_root=store, python=python.path, installer=Installer(finders=settings))


@pytest.mark.torch
def test_the_cpu_environment_imports_torch_and_has_the_tools(store):
    made = make(store)
    code = "import torch, numpy; print(torch.__version__, torch.ones(2).numpy().sum())"
    clean = {"PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error"}
    said = subprocess.check_output([made.python, "-c", code], text=True, env=clean, cwd="/")
    assert said.split() == ["2.13.0+cpu", "2.0"]
    for tool in ("cmake", "ninja"):
        subprocess.run([made.path / "bin" / tool, "--version"], check=True, env=clean, stdout=subprocess.DEVNULL)
    code = "import scikit_build_core; print(scikit_build_core.__version__)"
    said = subprocess.check_output([made.python, "-c", code], text=True, env=clean)
    assert int(said.partition(".")[0]) >= 1


@pytest.mark.torch
def test_a_made_environment_is_found_again_whole(store):
    made = make(store)
    before = made.path.stat().st_ino
    assert make(store) == made
    assert made.path.stat().st_ino == before


@pytest.mark.cmake
@pytest.mark.cuda
@pytest.mark.parametrize("compute", TOOLKITS)
@pytest.mark.skipif(sys.platform != "linux", reason="there is no CUDA elsewhere")
def test_cmake_builds_cuda_with_the_toolkit_of_the_wheels(store, tmp_path, compute):
    made = make(store, framework=Framework.TVM_FFI, version="0.1", compute=compute)
    root = cuda_wheels.cuda_root(made.site_packages)
    assert root is not None
    for name, text in TINY.items():
        (tmp_path / name).write_text(text)
    clean = {"PATH": "/usr/bin:/bin"}
    configure = [
        *(made.path / "bin/cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"),
        *(f"-DCMAKE_MAKE_PROGRAM={made.path / 'bin/ninja'}", f"-DCMAKE_CUDA_COMPILER={root / 'bin/nvcc'}"),
        "-DCMAKE_CUDA_ARCHITECTURES=90",
    ]
    said = subprocess.run(configure, check=False, env=clean, text=True, capture_output=True)
    assert said.returncode == 0, said.stderr
    assert f"Found CUDAToolkit: {root}" in said.stdout
    assert f'found version "{compute[2:4]}.{compute[4]}' in said.stdout
    built = subprocess.run(
        [made.path / "bin/cmake", "--build", tmp_path / "build"], check=False, env=clean, text=True, capture_output=True
    )
    assert built.returncode == 0, built.stdout
    needed = subprocess.check_output(["readelf", "-d", tmp_path / "build/libtiny.so"], text=True)
    assert "libcudart.so.13" in needed


@pytest.mark.cuda
@pytest.mark.parametrize("compute", TOOLKITS)
@pytest.mark.skipif(sys.platform != "linux", reason="there is no CUDA elsewhere")
def test_what_a_pinned_toolkit_compiles_for_is_what_its_assembler_lists(store, compute):
    made = make(store, framework=Framework.TVM_FFI, version="0.1", compute=compute)
    root = cuda_wheels.cuda_root(made.site_packages)
    answer = subprocess.check_output([root / "bin/ptxas", "--help"], text=True)
    allowed = answer[answer.index("--gpu-name") :]
    listed = re.findall(r"'sm_([0-9]+)([0-9])([af]?)'", allowed[: allowed.index("Default value")])
    toolkit = Version(f"{compute[2:4]}.{compute[4]}")
    newest = next(each for each in architectures.generations() if each.since <= toolkit)
    assert {f"{major}.{minor}{suffix}" for major, minor, suffix in listed} == set(newest.targets)
