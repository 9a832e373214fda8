"""XPU with the parts of oneAPI that come as wheels: real SYCL headers for the host, the real compiler for a device.

icpx itself is in none of them, so that what it makes of a whole project is not tested here.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.cli import run
from tests.integration import rendered

ONEAPI = Path(os.environ.get("BUILDER_TEST_XPU") or sys.prefix)
pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.xpu,
    rendered.needs_torch,
    pytest.mark.skipif(
        not (ONEAPI / "lib/libsycl-jit.so").exists(),
        reason="dpcpp-cpp-rt, 0.5 GB, is not installed: make test-xpu, or BUILDER_TEST_XPU=<environment that has it>",
    ),
]
# The host's compiler in the place of icpx: without the options for a device, with the headers that icpx brings.
ICPX = """#!/bin/sh
sycl=
for argument; do
  shift
  case "$argument" in
    -fsycl*) sycl="-isystem {root}/include -L{root}/lib" ;;
    -foffload*|-Xsycl*|-device*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {compiler} "$@" $sycl ${{sycl:+-Wl,--as-needed -lsycl}}
"""
COMPONENT = """
[kernel.one]
backend = "xpu"
depends = []
src = ["one.cpp"]
sycl-flags = ["-DSYCL_FLAG=7"]
"""
SOURCE = """
#include <cstdint>
#include <sycl/sycl.hpp>

struct Doubled {
  const float* from;
  float* to;
  void operator()(sycl::id<1> i) const { to[i] = SYCL_FLAG * from[i]; }
};

void doubled(sycl::queue& queue, const float* from, float* to) {
  queue.parallel_for(sycl::range<1>(8), Doubled{from, to});
}

int64_t answer() { return SYCL_FLAG; }
"""
SELECT = """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void select_floats(const float* gate, const float* value, float* result) {
  Select<float>{gate, value, result}(sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id());
}
"""


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """The one header that only a torch for XPU has: it says how torch itself was configured."""
    folder = tmp_path_factory.mktemp("headers")
    macros = folder / "c10/xpu/impl/xpu_cmake_macros.h"
    macros.parent.mkdir(parents=True)
    macros.write_text("#pragma once\n")
    include = rendered.torch_folder() / "include"
    return [f"-I{folder}", f"-I{include}", f"-I{include}/torch/csrc/api/include"]


def tvm_ffi_headers():
    libinfo = pytest.importorskip("tvm_ffi.libinfo")
    return [f"-I{libinfo.find_include_path()}", f"-I{libinfo.find_dlpack_include_path()}"]


@pytest.fixture(scope="module")
def on_device(tmp_path_factory):
    """Compile device code, and run a kernel of it: on_device(source, *options, kernel="-")."""
    program = tmp_path_factory.mktemp("check") / "sycl_check"
    libraries = [f"-L{ONEAPI}/lib", "-lsycl"]
    source = Path(__file__).with_name("sycl_check.cpp")
    subprocess.run(["c++", "-std=c++17", f"-isystem{ONEAPI}/include", source, "-o", program, *libraries], check=True)
    env = {**os.environ, "LD_LIBRARY_PATH": f"{ONEAPI}/lib", "OCL_ICD_FILENAMES": f"{ONEAPI}/lib/libintelocl.so"}

    def check(source, *options, kernel="-"):
        return rendered.run([program, source, kernel, *options], env=env)

    return check


def on_host(source, *options, output):
    return rendered.run(
        ["c++", "-fPIC", "-std=c++20", f"-isystem{ONEAPI}/include", *options, "-c", source, "-o", output]
    )


def test_the_host_side_of_a_project_compiles_links_loads_and_registers(tmp_path, on_device):
    bin_ = tmp_path / "oneapi/compiler/latest/bin"
    bin_.mkdir(parents=True)
    for name, compiler in (("icpx", "c++"), ("icx", "cc")):
        (bin_ / name).write_text(ICPX.format(root=ONEAPI, compiler=compiler))
        (bin_ / name).chmod(0o755)
    package = tmp_path / "oneapi/lib/cmake/dnnl/dnnl-config.cmake"
    package.parent.mkdir(parents=True)
    package.write_text("add_library(DNNL::dnnl INTERFACE IMPORTED)\n")
    kernel = rendered.small_kernel(tmp_path / "kernel", COMPONENT, {"one.cpp": SOURCE}, backend="xpu")
    rendered.write_project(kernel, "xpu", tmp_path / "project")
    env = rendered.environment(ONEAPI_ROOT=tmp_path / "oneapi")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", f"-Ddnnl_ROOT={tmp_path}/oneapi", env=env)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed", env=env)
    (library,) = (tmp_path / "installed").glob("small/*.so")
    assert b"libsycl.so" in library.read_bytes()
    (tmp_path / "missing").mkdir()  # in a CPU torch
    for name in ("libtorch_xpu.so", "libc10_xpu.so"):
        if (tmp_path / "build/stand_in" / name).is_file():
            shutil.copy(tmp_path / "build/stand_in" / name, tmp_path / "missing")
    folders = os.pathsep.join((str(tmp_path / "missing"), str(ONEAPI / "lib")))
    loads = rendered.environment(LD_LIBRARY_PATH=folders)
    assert rendered.registered(tmp_path / "installed", "small", "XPU", env=loads) == "['answer']"

    # The device compiler gets what the project gives: its definitions and include folders.
    words = shlex.split(rendered.commands(tmp_path / "build")["one.cpp"])
    options = [word for word in words if word.startswith(("-D", "-I", "-std="))]
    assert "-DSYCL_FLAG=7" in options
    compiled = on_device(kernel / "one.cpp", *options)
    assert compiled.returncode == 0, compiled.output
    refused = on_device(kernel / "one.cpp", *(option for option in options if "SYCL_FLAG" not in option))
    assert "use of undeclared identifier 'SYCL_FLAG'" in refused.output


def test_the_example_compiles_for_the_host_and_for_a_device(tmp_path, headers, on_device):
    rendered.write_project(rendered.EXAMPLES / "relu", "xpu", tmp_path)
    options = ["-DXPU_KERNEL", "-DUSE_XPU", f"-I{tmp_path}/torch-ext", *headers]
    done = on_host(tmp_path / "relu_xpu/relu.cpp", *options, output=tmp_path / "relu.o")
    assert done.returncode == 0, done.output
    done = on_device(tmp_path / "relu_xpu/relu.cpp", "-std=c++20", *options)
    assert done.returncode == 0, done.output


def test_the_device_code_of_the_example_is_right_on_a_cpu(tmp_path, headers, on_device):
    rendered.write_project(rendered.EXAMPLES / "relu", "xpu", tmp_path)
    source = tmp_path / "select.cpp"
    source.write_text((tmp_path / "relu_xpu/relu.cpp").read_text() + SELECT)
    done = on_device(source, "-std=c++20", f"-I{tmp_path}/torch-ext", *headers, kernel="select_floats")
    assert done.returncode == 0, done.output
    # The gates are -2 -0 0 0.5 3 nan inf -inf, the values 1 to 8: what is no number passes.
    assert done.output.splitlines()[0] == "0 0 0 4 5 6 7 0"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("throw 1;", "SYCL kernel cannot use exceptions"),
        ("static int calls = 0; ++calls;", "SYCL kernel cannot use a non-const static data variable"),
        ("delete new int(1);", "SYCL kernel cannot allocate storage"),
    ],
    ids=["exception", "static variable", "allocation"],
)
def test_what_a_device_cannot_do_is_seen(tmp_path, on_device, body, complaint):
    source = tmp_path / "bad.cpp"
    source.write_text(SOURCE.replace("to[i] =", f"{body} to[i] ="))
    assert on_host(source, "-DSYCL_FLAG=2", output=tmp_path / "bad.o").returncode == 0
    done = on_device(source, "-DSYCL_FLAG=2")
    assert done.returncode == 1
    assert complaint in done.output


@pytest.mark.parametrize("framework", ["torch", "tvm-ffi"])
def test_a_new_kernel_for_xpu_compiles_for_the_host_and_for_a_device(tmp_path, headers, on_device, framework):
    new = tmp_path / "new-kernel"
    assert run(["init", str(new), "--backends", "xpu", "--framework", framework, "--license", "Apache-2.0"]) == 0
    options = ["-DXPU_KERNEL", "-DUSE_XPU", f"-I{new}/csrc", *(headers if framework == "torch" else tvm_ffi_headers())]
    done = on_host(new / "csrc/scale_xpu.cpp", *options, output=tmp_path / "scale.o")
    assert done.returncode == 0, done.output
    done = on_device(new / "csrc/scale_xpu.cpp", "-std=c++20", *options)
    assert done.returncode == 0, done.output
