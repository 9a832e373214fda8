"""A kernel on CUTLASS: the headers that the index has, or a folder of the user's, through the real nvcc."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.integration import rendered

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.cuda,
    rendered.needs_torch,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]
COMPONENT = """
[kernel.one]
backend = "cuda"
depends = ["{depends}"]
src = ["one.cu"]
cuda-capabilities = ["8.0"]
"""
SOURCE = """#include <cstdint>
#include <cutlass/cutlass.h>
#include <cutlass/version.h>
__global__ void nothing() {}
int64_t answer() { nothing<<<1, 1>>>(); return CUTLASS_MAJOR * 10 + CUTLASS_MINOR; }
"""
VARIANT = "torch-stable-abi210-cu130-x86_64-linux"


def kernel(tmp_path, depends="cutlass_3_8"):
    component = COMPONENT.format(depends=depends)
    return rendered.small_kernel(tmp_path / "kernel", component, {"one.cu": SOURCE}, backend="cuda")


def own(folder):
    """A folder as the repository has it, with a version that no release has."""
    (folder / "include/cutlass").mkdir(parents=True)
    (folder / "include/cutlass/cutlass.h").write_text("#pragma once\n")
    (folder / "include/cutlass/version.h").write_text("#define CUTLASS_MAJOR 77\n#define CUTLASS_MINOR 7\n")
    return folder


@pytest.mark.network
def test_the_pinned_wheel_is_fetched_and_compiled_with(tmp_path):
    rendered.write_project(kernel(tmp_path), "cuda", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    version = next((tmp_path / "build/headers").glob("*/cutlass_library/source/include/cutlass/version.h"))
    assert "#define CUTLASS_MINOR 8" in version.read_text()


@pytest.mark.network
def test_a_wheel_with_another_hash_is_refused(tmp_path):
    rendered.write_project(kernel(tmp_path), "cuda", tmp_path / "project")
    lists = tmp_path / "project/CMakeLists.txt"
    lists.write_text(lists.read_text().replace("SHA256 0", "SHA256 1"))
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode != 0
    assert "pip cannot fetch nvidia-cutlass==3.8.0.0 with sha256 1" in rendered.words(done.output)
    assert "DO NOT MATCH THE HASHES" in done.output


def test_a_commit_that_the_repository_does_not_have_is_refused(tmp_path):
    rendered.write_project(kernel(tmp_path, "cutlass_4_0"), "cuda", tmp_path / "project")
    subprocess.run(["git", "init", "--quiet", tmp_path / "empty"], check=True)
    instead = {"GIT_CONFIG_COUNT": 1, "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/empty.insteadOf"}
    env = rendered.environment(**instead, GIT_CONFIG_VALUE_0="https://github.com/NVIDIA/cutlass")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", env=env)
    assert done.returncode != 0
    assert "git cannot fetch dc4817921edda44a549197ff3a9dcf5df0636e7b of" in rendered.words(done.output)


@pytest.mark.parametrize("how", ["variable of CMake", "variable of the environment"])
def test_a_folder_of_the_user_goes_first(tmp_path, how):
    rendered.write_project(kernel(tmp_path, "cutlass_4_0"), "cuda", tmp_path / "project")
    folder = own(tmp_path / "mine")
    definitions = [f"-DCUTLASS_SRC_DIR={folder}"] if how == "variable of CMake" else []
    env = rendered.environment(CUTLASS_SRC_DIR=None if definitions else folder)
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *definitions, env=env)
    assert done.returncode == 0, done.output
    assert f"Found cutlass 4.0.0: {folder}" in done.output
    assert f"-isystem {folder}/include" in rendered.commands(tmp_path / "build")["one.cu"].replace('"', "")


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux")
def test_builder_builds_with_the_wheel_and_knows_a_folder_by_its_content(new_store, tmp_path):
    path = kernel(tmp_path)
    base = {**os.environ, "BUILDER_STORE": str(new_store(tmp_path / "store")), "PYTHONPATH": str(rendered.ROOT)}
    base.pop("CUTLASS_SRC_DIR", None)
    command = [sys.executable, "-m", "builder", "build", path, "--variant", VARIANT, "--output", tmp_path / "dist"]
    first = rendered.run(command, env=base)
    assert first.returncode == 0, first.output
    mine = rendered.run(command, env={**base, "CUTLASS_SRC_DIR": str(own(tmp_path / "a"))})
    assert mine.returncode == 0, mine.output
    assert "CUTLASS_SRC_DIR" in mine.output, "the reason for building again"
    moved = rendered.run(command, env={**base, "CUTLASS_SRC_DIR": str(own(tmp_path / "b"))})
    assert "nothing changed" in moved.output
    nothing = rendered.run(command, env={**base, "CUTLASS_SRC_DIR": str(tmp_path)})
    assert nothing.returncode == 4
    assert "there is no 'include/cutlass/cutlass.h' in it" in nothing.output
