"""CUDA: the stable ABI from the headers of whatever torch is there, by the real nvcc."""

import json
import os
import re
import shutil
import subprocess

import pytest

from builder.binary import device_code, fatbin
from builder.binary.extension import Extension
from builder.config import Version
from builder.matrix import architectures
from builder.toolchain import device_compilers
from builder.toolchain.tool import Search
from tests.integration import rendered

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.cuda,
    rendered.needs_torch,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]
ONE = """
[kernel.one]
backend = "cuda"
depends = []
src = ["one.cu"]
"""
ANSWER = """#include <cstdint>
__global__ void nothing() {}
int64_t answer() { nothing<<<1, 1>>>(); return 42; }
"""


def configure(tmp_path, components, *definitions, files=None, env=None):
    kernel = rendered.small_kernel(tmp_path / "kernel", components, {"one.cu": ANSWER, **(files or {})}, backend="cuda")
    rendered.write_project(kernel, "cuda", tmp_path / "project")
    return rendered.configure(tmp_path / "project", tmp_path / "build", *definitions, env=env)


def plan(tmp_path):
    return json.loads((tmp_path / "build/kernel-plan.json").read_text())


def test_a_stable_kernel_builds_without_a_cuda_torch(tmp_path):
    done = configure(tmp_path, ONE + 'cuda-capabilities = ["8.0", "9.0a", "10.3a", "10.9a"]\n')
    assert done.returncode == 0, done.output
    assert "Warning" not in done.output
    assert "asked for, and not compiled by CUDA" in rendered.words(done.output)
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    assert plan(tmp_path)["components"] == [
        {
            "name": "one",
            "requested": ["8.0", "9.0a", "10.3a", "10.9a"],
            "compiled": ["8.0", "9.0a", "10.3a"],
            "lost": ["10.9a"],
        }
    ]
    metadata = json.loads((tmp_path / "installed/small/metadata.json").read_text())
    assert metadata["backend"] == {"type": "cuda", "archs": ["8.0", "9.0a", "10.3a"]}
    (library,) = (tmp_path / "installed").glob("small/*.so")
    content = library.read_bytes()
    assert b"libtorch_cuda.so\0" in content
    assert str(tmp_path).encode() not in content


def test_a_pair_is_compiled_and_named_by_the_gpu_that_it_is_for(tmp_path):
    pairs = 'cuda-capabilities = ["8.0", "8.0:8.6", "10.0f:10.0", "10.0f:10.3", "8.0:10.9"]\n'
    done = configure(tmp_path, ONE + pairs)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (component,) = plan(tmp_path)["components"]
    assert component["compiled"] == ["8.0", "8.0:8.6", "10.0f", "10.0f:10.3f"]
    assert component["lost"] == ["8.0:10.9"]
    archs = ["8.0", "8.6", "10.0f", "10.3f"]
    assert plan(tmp_path)["archs"] == archs
    assert json.loads((tmp_path / "installed/small/metadata.json").read_text())["backend"]["archs"] == archs
    (library,) = (tmp_path / "installed").glob("small/*.so")
    assert device_code.read(library.name, library.read_bytes()) == device_code.images_of(tuple(archs))


def test_device_code_is_compressed_with_a_toolkit_whose_drivers_all_read_it(tmp_path):
    done = configure(tmp_path, ONE, "-DKERNEL_CUDA_ARCHS=8.0;9.0+PTX")
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed").glob("small/*.so")
    content = library.read_bytes()
    without = Extension.read(library.name, content).relocatable_device_code
    images = device_code.images_of(("8.0", "9.0+PTX"))
    assert device_code.read(library.name, content, without=without) == images
    stored = [each for image, each in fatbin.entries(library.name, content) if image.arch == "8.0"]
    assert [each[:4] for each in stored] == [b"\x28\xb5\x2f\xfd"]


def test_the_targets_of_a_toolkit_are_those_that_its_assembler_lists():
    root = device_compilers.find_cuda(Search(environ=os.environ, digest=str), root=None, toolkit=None).path.parent
    answer = subprocess.run([root / "ptxas", "--help"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"release ([0-9.]+)", subprocess.check_output([root / "ptxas", "--version"], text=True))[1]
    allowed = answer[answer.index("--gpu-name") :]
    listed = re.findall(r"'sm_([0-9]+)([0-9])([af]?)'", allowed[: allowed.index("Default value")])
    newest = next(each for each in architectures.generations() if each.since <= Version(version))
    assert {f"{major}.{minor}{suffix}" for major, minor, suffix in listed} == set(newest.targets)


def test_flags_are_of_the_source_and_not_of_the_project(tmp_path):
    components = (
        ONE
        + 'cuda-capabilities = ["8.0"]\ncuda-flags = ["-O1"]\n'
        + ONE.replace("one", "two")
        + ('cuda-capabilities = ["9.0+PTX"]\n')
    )
    done = configure(tmp_path, components, files={"two.cu": "int two() { return 2; }\n"})
    assert done.returncode == 0, done.output
    found = rendered.commands(tmp_path / "build")
    assert "compute_80" in found["one.cu"]
    assert "compute_90" not in found["one.cu"]
    assert "code=compute_90" in found["two.cu"]
    assert " -O1" not in found["two.cu"]
    assert "compute_52" not in "".join(found.values()), "CMake adds its own default"


def test_a_component_for_a_newer_toolkit_is_left_out_and_said_to_be(tmp_path):
    newer = ONE.replace("one", "newer") + 'cuda-minver = "99.0"\n'
    done = configure(
        tmp_path, ONE + newer, "-DKERNEL_CUDA_ARCHS=8.0", files={"newer.cu": "#error not to be compiled\n"}
    )
    assert done.returncode == 0, done.output
    assert "kernel 'newer' is left out" in done.output
    assert plan(tmp_path)["left-out"] == [{"name": "newer", "minver": "99.0"}]
    assert "newer.cu" not in rendered.commands(tmp_path / "build")


def test_a_component_for_the_host_alone_promises_no_device_code(tmp_path):
    host = ONE.replace("one.cu", "one.cpp")
    done = configure(tmp_path, host, files={"one.cpp": "#include <cstdint>\nint64_t answer() { return 42; }\n"})
    assert done.returncode == 0, done.output
    assert "kernel 'one': no source is for the GPU" in done.output
    assert plan(tmp_path)["archs"] == []
    assert plan(tmp_path)["components"] == [{"name": "one", "requested": [], "compiled": [], "lost": []}]
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    metadata = json.loads((tmp_path / "installed/small/metadata.json").read_text())
    assert metadata["backend"] == {"type": "cuda", "archs": []}


def test_nothing_left_to_compile_is_an_error(tmp_path):
    done = configure(tmp_path, ONE + 'cuda-capabilities = ["3.5"]\n')
    assert done.returncode != 0
    assert "kernel 'one' asks for 3.5" in rendered.words(done.output)


def test_a_capability_that_nvcc_has_dropped_is_lost_and_not_an_error_of_nvcc(tmp_path):
    done = configure(tmp_path, ONE + 'cuda-capabilities = ["7.0", "8.0"]\n')
    assert done.returncode == 0, done.output
    (component,) = plan(tmp_path)["components"]
    assert sorted(component["compiled"] + component["lost"]) == ["7.0", "8.0"]
    assert "8.0" in component["compiled"]


def test_a_toolkit_that_is_named_and_missing_is_an_error(tmp_path):
    done = configure(tmp_path, ONE, f"-DCMAKE_CUDA_COMPILER={tmp_path}/nvcc")
    assert done.returncode != 0
    assert "nvcc" in done.output


def test_a_classic_kernel_refuses_a_torch_of_another_backend(tmp_path):
    rendered.write_project(rendered.EXAMPLES / "relu", "cuda", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    if done.returncode == 0:
        pytest.skip("the torch beside the tests is a CUDA build")
    assert "this kernel is for cuda, and the torch found," in rendered.words(done.output)


@pytest.mark.slow
def test_the_stable_example_builds_for_every_capability(tmp_path):
    rendered.write_project(rendered.EXAMPLES / "rmsnorm-stable", "cuda", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    archs = json.loads((tmp_path / "installed/rmsnorm_stable/metadata.json").read_text())["backend"]["archs"]
    assert archs == plan(tmp_path)["archs"]
    assert len(archs) >= 8
