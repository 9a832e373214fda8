"""Each rule of reproducible builds, with the real compilers: bits differ without it, and are the same with it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builder import sandbox
from builder.make import reproducible
from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL
from tests.given.processes import tool
from tests.integration import hostile, rendered

ROOT = Path(__file__).parent.parent.parent
CUDA = "ctypes-cu130-x86_64-linux"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture
def build(new_store, tmp_path):
    def run(kernel, variant, *, place, without=(), variables=None, env=None):
        """Build in a store of its own, whose path has the length of `place` in it; return the wheel's sha256."""
        store = new_store(tmp_path / place / "store")
        experiment = json.dumps({"without": without, "variables": variables or {}})
        output = tmp_path / place / "dist"
        shutil.rmtree(output, ignore_errors=True)
        options = ("--store", store, "--output", output, "--rebuild", "--experiment", experiment)
        done = subprocess.run(
            [sys.executable, "-m", "builder", "build", *map(str, (kernel, "--variant", variant, *options))],
            env={**os.environ, "PYTHONPATH": str(ROOT), "CCACHE_DISABLE": "1", **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (wheel,) = output.glob("*.whl")
        return hashlib.sha256(wheel.read_bytes()).hexdigest()

    return run


def says(kernel, text):
    """Let the library of a kernel hold a text, where no optimisation removes it."""
    source = kernel / "csrc/scale.cpp"
    source.write_text(f'{source.read_text()}\n__attribute__((used)) extern const char planted[] = "says " {text};\n')


DEVICE = """
namespace {
template <typename T> __global__ void scale(T *out, const T *values, T factor, long count) {
  const long i = blockIdx.x * 256L + threadIdx.x;
  if (i < count) out[i] = values[i] * factor;
}
}
extern "C" int plain_scale(float *out, const float *values, float factor, long count) {
  scale<<<(count + 255) / 256, 256>>>(out, values, factor, count);
  return cudaGetLastError();
}
extern "C" int last_error() { return cudaGetLastError(); }
"""


@pytest.fixture
def device(plain):
    """A kernel for CUDA with what nvcc names by itself: an unnamed namespace, a template."""
    (plain / "csrc/scale.cu").write_text(DEVICE)
    edit(plain / "build.toml", 'libraries = ["cublas"]\n', "")
    return plain


AWAY = ("canonical-path",)


def test_without_a_prefix_map_the_folder_of_the_build_is_in_the_library(build, plain):
    says(plain, "__FILE__")
    off = (*AWAY, "prefix-map")
    assert build(plain, PLAIN_CELL, place="a", without=off) != build(plain, PLAIN_CELL, place="longer/b", without=off)
    assert build(plain, PLAIN_CELL, place="a", without=AWAY) == build(plain, PLAIN_CELL, place="longer/b", without=AWAY)


def test_without_the_canonical_path_and_maps_a_text_differs_and_with_it_none_does(build, plain):
    if not sandbox.can_mount():
        pytest.skip("this kernel allows no user namespaces")
    says(plain, "__FILE__")
    off = ("prefix-map",)
    assert build(plain, PLAIN_CELL, place="a", without=off) == build(plain, PLAIN_CELL, place="longer/b", without=off)


def test_without_the_epoch_the_time_of_the_build_is_in_the_library(build, plain):
    says(plain, "__TIME__")
    off = ("source-date-epoch",)
    first = build(plain, PLAIN_CELL, place="a", without=off)
    assert build(plain, PLAIN_CELL, place="a", without=off) != first
    assert build(plain, PLAIN_CELL, place="a") == build(plain, PLAIN_CELL, place="b")


def test_without_the_list_of_variables_a_compiler_reads_the_users(build, plain, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include/mine.h").write_text('#define MINE "the user\'s"\n')
    source = plain / "csrc/scale.cpp"
    source.write_text(
        '#if __has_include(<mine.h>)\n#include <mine.h>\n#else\n#define MINE ""\n#endif\n' + source.read_text()
    )
    says(plain, "MINE")
    noisy = {"CPATH": str(tmp_path / "include")}
    off = ("environment", "sandbox")  # in which the folder is not there
    first = build(plain, PLAIN_CELL, place="a", without=off)
    assert build(plain, PLAIN_CELL, place="a", without=off, env=noisy) != first
    assert build(plain, PLAIN_CELL, place="a") == build(plain, PLAIN_CELL, place="a", env=noisy)


def test_without_a_sandbox_a_file_that_no_key_sees_is_in_the_library(build, plain, tmp_path):
    if sandbox.why_unavailable() is not None:
        pytest.skip(f"no sandbox here: {sandbox.why_unavailable()}")
    (tmp_path / "file").write_text("first")
    hostile.including(plain / "csrc/scale.cpp", tmp_path / "file")
    first = build(plain, PLAIN_CELL, place="a", without=("sandbox",))
    (tmp_path / "file").write_text("other")
    assert build(plain, PLAIN_CELL, place="a", without=("sandbox",)) != first
    with pytest.raises(AssertionError, match="file not found"):
        build(plain, PLAIN_CELL, place="a")


def test_without_a_fixed_zip_the_time_of_packing_is_in_the_wheel(build, plain):
    off = ("fixed-zip",)
    first = build(plain, PLAIN_CELL, place="a", without=off)
    time.sleep(2)  # a zip names times in steps of two seconds
    assert build(plain, PLAIN_CELL, place="a", without=off) != first


@pytest.mark.cuda
def test_without_the_canonical_path_or_the_rewrite_kernels_are_named_by_the_folder(build, device):
    off = (*AWAY, "module-id")
    assert build(device, CUDA, place="a", without=off) != build(device, CUDA, place="longer/b", without=off)
    assert build(device, CUDA, place="a", without=AWAY) == build(device, CUDA, place="longer/b", without=AWAY)


@pytest.mark.cuda
def test_without_the_install_rpath_the_folder_of_the_build_leaves_a_trace(build, device):
    # CMake takes the path out again when it installs, and what it leaves is as long as the path was.
    off = (*AWAY, "install-rpath")
    assert build(device, CUDA, place="a", without=off) != build(device, CUDA, place="longer/b", without=off)


@pytest.mark.cuda
def test_without_stripping_a_process_id_is_in_the_library(build, device):
    # In the sandbox, processes are numbered alike in every build.
    without = ("strip", "sandbox")
    first = build(device, CUDA, place="a", without=without)
    assert build(device, CUDA, place="a", without=without) != first
    assert build(device, CUDA, place="a") == build(device, CUDA, place="longer/b")


def test_without_a_seed_sections_have_random_names(tmp_path):
    text = f"""
    cmake_minimum_required(VERSION 3.26)
    project(seeded CXX)
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
    include("{ROOT}/cmake/random_seed.cmake")
    add_library(seeded OBJECT twice.cpp)
    target_compile_options(seeded PRIVATE -flto)
    kernel_random_seed(twice.cpp CXX)
    """
    folder = tmp_path / "seeded"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(text)
    (folder / "twice.cpp").write_text("int twice(int value) { return 2 * value; }\n")

    def compiled(*options):
        shutil.rmtree(folder / "build", ignore_errors=True)
        rendered.configure(folder, folder / "build", *options)
        rendered.run([tool("cmake"), "--build", folder / "build"])
        (found,) = folder.glob("build/**/*.o")
        return found.read_bytes()

    off = "-DKERNEL_WITHOUT_RULES=random-seed"
    assert compiled(off) != compiled(off)
    assert compiled() == compiled()


def test_every_rule_has_a_test_here_or_beside_its_module():
    # A glob's order is that of tests/kernel/test_source_set.py.
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in reproducible.NAMES if name not in text.split("def test_every_rule")[0]] == [
        "sorted-inputs"
    ]
