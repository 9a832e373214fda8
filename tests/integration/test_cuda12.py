"""CUDA 12: every CUDA example is compiled by an nvcc 12 of the machine, such as Debian's 12.4 (`make test-cuda12`).

The matrix has cells for CUDA 12.6, which are built by 12.6 alone. Where the nvcc here is an older 12, a script that
says it is 12.6 stands before it: so the wheels are called, and their code is of the nvcc that is here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder.binary import device_code
from builder.metadata import KernelMetadata
from tests.integration import rendered


def release():
    """Return the release of nvcc on PATH, such as 12.4; empty without one."""
    nvcc = shutil.which("nvcc")
    said = (
        "" if nvcc is None else subprocess.run((nvcc, "--version"), capture_output=True, text=True, check=True).stdout
    )
    found = re.search(r"release ([0-9.]+)", said)
    return "" if found is None else found[1]


pytestmark = [
    pytest.mark.cuda12,
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.skipif(not release().startswith("12."), reason="no nvcc of CUDA 12 on PATH: make test-cuda12"),
    pytest.mark.skipif(not Path("/usr/include/cuda_runtime_api.h").is_file(), reason="made for Debian's CUDA, in /usr"),
]
STABLE = "torch-stable-abi210-cu126-x86_64-linux"
CELLS = [("rmsnorm-stable", STABLE), ("relu-tvm-ffi", "tvm-ffi01-cu126-x86_64-linux")]
TOOLS = ("ptxas", "fatbinary", "cudafe++", "nvlink")
PACKAGES = ("nvidia-cuda-dev", "libthrust-dev", "libcub-dev", "libcu++-dev")
COMPILED = {"12.4": ("7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0+PTX")}
"""What a release compiles of the capabilities that are the default."""


def builder(store, *arguments, **changes):
    env = rendered.environment(PYTHONPATH=rendered.ROOT, BUILDER_STORE=store, **changes)
    return rendered.run([sys.executable, "-m", "builder", *arguments], env=env)


def says_12_6(folder):
    """Make a toolkit whose nvcc says that it is 12.6, of links to that of /usr."""
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin/nvcc"
    here = re.escape(release())
    told = f"/usr/bin/nvcc --version | sed 's/release {here}, V{here}/release 12.6, V12.6/'"
    script.write_text(f'#!/bin/sh\nif [ "$*" = --version ]; then {told}; exit; fi\nexec /usr/bin/nvcc "$@"\n')
    script.chmod(0o755)
    for name in TOOLS:
        (folder / "bin" / name).symlink_to(f"/usr/bin/{name}")
    (folder / "include").mkdir()
    for path in subprocess.run(("dpkg", "-L", *PACKAGES), capture_output=True, text=True, check=True).stdout.split():
        if re.fullmatch(r"/usr/include/[^/]+", path) and not (folder / "include" / Path(path).name).is_symlink():
            (folder / "include" / Path(path).name).symlink_to(path)
    return folder


def test_a_cell_of_another_release_is_refused_with_both(store, tmp_path):
    if release() == "12.6":
        pytest.skip("nvcc is that of the cells")
    kernel = rendered.EXAMPLES / "rmsnorm-stable"
    done = builder(store, "build", kernel, "--variant", STABLE, "--output", tmp_path)
    assert done.returncode != 0
    assert f"the CUDA toolkit at '/usr' is {release()}; this cell needs 12.6" in done.output


@pytest.mark.parametrize(("example", "variant"), CELLS, ids=[cell[0] for cell in CELLS])
def test_a_cell_of_cuda_12_is_built_loaded_and_audited(store, tmp_path, example, variant):
    toolkit = says_12_6(tmp_path / "cuda")
    command = ("build", rendered.EXAMPLES / example, "--variant", variant, "--quiet", "--json", "--output", tmp_path)
    done = builder(store, *command, CUDA_HOME=toolkit)
    assert done.returncode == 0, done.output
    (built,) = json.loads(done.output[done.output.index("[\n") :])
    assert built["report"]["ops"]
    (wheel,) = tmp_path.glob("*.cu126-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/metadata.json"))
        said = json.loads(archive.read(name))
        (library,) = (name for name in archive.namelist() if name.endswith(".so"))
        found = device_code.read(library, archive.read(library))
    archs, shared = tuple(said["backend"]["archs"]), KernelMetadata(said).shared_code
    assert found == device_code.images_of(tuple(arch for arch in archs if arch not in shared))
    assert shared == ("8.9",)
    assert archs == COMPILED.get(release(), archs)
    audited = builder(store, "audit", "--gpus", wheel)
    assert audited.returncode == 0, audited.output
    assert re.search(rf"12\.0 .* PTX for 9\.0, .*driver of CUDA {re.escape(release())} or newer", audited.output)


def test_the_same_wheel_is_built_twice(tmp_path):
    """From two folders, with two stores: nvcc before 12.9 takes no seed for the names of kernels."""
    toolkit = says_12_6(tmp_path / "cuda")
    kernel = rendered.EXAMPLES / "relu-tvm-ffi"
    for name in ("one", "two"):
        moved = shutil.copytree(kernel, tmp_path / name / "kernel")
        command = ("build", moved, "--variant", CELLS[1][1], "--quiet", "--output", tmp_path / name)
        done = builder(tmp_path / name / "store", *command, CUDA_HOME=toolkit)
        assert done.returncode == 0, done.output
    one, two = ([path.read_bytes() for path in (tmp_path / name).glob("*.whl")] for name in ("one", "two"))
    assert one == two


def test_a_classic_kernel_compiles_against_a_torch_for_cuda(tmp_path):
    """It is not loaded: the torch of the default index is for CUDA 13, and asks for the runtime of that."""
    torch = tmp_path / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", torch, "torch==2.14.*"]
    fetched = rendered.run(pip)
    if fetched.returncode != 0 or not list(torch.glob("torch/lib/libtorch_cuda.so")):
        pytest.skip("the index has no torch for CUDA")
    rendered.write_project(rendered.EXAMPLES / "relu", "cuda", tmp_path / "project")
    done = rendered.configure(
        tmp_path / "project",
        tmp_path / "build",
        f"-DKERNEL_TORCH_DIR={torch}/torch",
        "-DKERNEL_CUDA_ARCHS=9.0",
        env=rendered.environment(PYTHONPATH=torch, CXX=os.environ.get("CXX")),
    )
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed").glob("relu/*.so")
    assert device_code.read(library.name, library.read_bytes()) == device_code.images_of(("9.0",))
