"""XPU and Metal, as far as a machine without their compilers can tell: what CMake would run."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests import needs
from tests.given.processes import tool
from tests.integration import rendered

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    rendered.needs_torch,
    pytest.mark.skipif(sys.platform != "linux", reason="a Mac has the real tools"),
]
ICPX = """#!/bin/sh
if [ "$*" = --version ]; then
  echo "Intel(R) oneAPI DPC++/C++ Compiler 2026.0.0 (2026.0.0.20260331)"
  exit
fi
case "$*" in
  *-Xsycl-target-backend*) command -v ocloc >/dev/null || {{ echo "llvm-foreach: no ocloc" >&2; exit 1; }} ;;
esac
for argument; do
  shift
  case "$argument" in
    -fsycl*|-foffload*|-Xsycl*|-device*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {compiler} "$@"
"""
XPU = """
[kernel.one]
backend = "xpu"
depends = []
src = ["one.cpp"]
sycl-flags = ["-DSYCL_FLAG=1"]
"""
METAL = """
[kernel.one]
backend = "metal"
depends = []
src = ["one/shader.metal", "two/shader.metal", "one.mm"]
include = ["inc"]
"""


MORE = """
[kernel.two]
backend = "{backend}"
depends = []
src = {src}
extension = "more"
[extension.more]
src = ["torch-ext/binding.cpp"]
cxx-flags = ["-DKEY={key}"]
"""


@pytest.fixture
def oneapi(tmp_path):
    """A folder with icpx and icx that are the host's compilers, and oneDNN's CMake package."""
    bin_ = tmp_path / "oneapi/compiler/latest/bin"
    bin_.mkdir(parents=True)
    for name, compiler in (("icpx", "c++"), ("icx", "cc")):
        (bin_ / name).write_text(ICPX.format(compiler=shutil.which(compiler)))
        (bin_ / name).chmod(0o755)
    ocloc = tmp_path / "oneapi/ocloc/latest/bin/ocloc"
    ocloc.parent.mkdir(parents=True)
    ocloc.write_text("#!/bin/sh\n")
    ocloc.chmod(0o755)
    package = tmp_path / "oneapi/dnnl/latest/lib/cmake/dnnl"
    package.mkdir(parents=True)
    (package / "dnnl-config.cmake").write_text("add_library(DNNL::dnnl INTERFACE IMPORTED)\n")
    return tmp_path / "oneapi"


@pytest.mark.slow
def test_an_xpu_project_compiles_sycl_with_the_oneapi_compiler(tmp_path, oneapi):
    files = {"one.cpp": "#include <cstdint>\nint64_t answer() { return SYCL_FLAG; }\n"}
    kernel = rendered.small_kernel(tmp_path / "kernel", XPU, files, backend="xpu")
    rendered.write_project(kernel, "xpu", tmp_path / "project")
    env = rendered.environment(ONEAPI_ROOT=oneapi)
    env["PATH"] += f":{oneapi}/ocloc/latest/bin"
    done = rendered.configure(tmp_path / "project", tmp_path / "build", env=env)
    assert done.returncode == 0, done.output
    command = rendered.commands(tmp_path / "build")["one.cpp"]
    assert f"{oneapi}/compiler/latest/bin/icpx" in command
    for flag in ("-fsycl ", "-fsycl-targets=spir64_gen,spir64", "-foffload-fp32-prec-div", "-foffload-fp32-prec-sqrt"):
        assert flag in command
    binding = rendered.commands(tmp_path / "build")["binding.cpp"]
    assert "-fsycl" not in binding
    for definition in ("-DXPU_KERNEL", "-DUSE_XPU"):
        assert definition in command
        assert definition in binding
    ninja = (tmp_path / "build/build.ninja").read_text()
    assert '-Xsycl-target-backend=spir64_gen "-device pvc,xe-lpg,ats-m150"' in ninja
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed", env=env)
    (library,) = (tmp_path / "installed").glob("small/*.so")
    assert b"libtorch_xpu.so\0" in library.read_bytes()


@pytest.mark.slow
def test_an_xpu_project_of_two_libraries_compiles_and_links_both(tmp_path, oneapi):
    more = MORE.format(backend="xpu", src='["one.cpp"]', key="XPU") + "defines = { LIBRARY = 2 }\n"
    files = {"one.cpp": "#include <cstdint>\nint64_t answer() { return SYCL_FLAG; }\n"}
    components = XPU + more.replace('extension = "more"', 'extension = "more"\nsycl-flags = ["-DSYCL_FLAG=2"]')
    kernel = rendered.small_kernel(tmp_path / "kernel", components, files, backend="xpu")
    rendered.write_project(kernel, "xpu", tmp_path / "project", unique_id="x")
    env = rendered.environment(ONEAPI_ROOT=oneapi)
    env["PATH"] += f":{oneapi}/ocloc/latest/bin"
    done = rendered.configure(tmp_path / "project", tmp_path / "build", env=env)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed", env=env)
    found = {path.name: path.read_bytes() for path in (tmp_path / "installed").glob("small/*.so")}
    assert sorted(found) == ["_small_more_xpu_x.so", "_small_xpu_x.so"]
    assert all(b"libtorch_xpu.so\0" in content for content in found.values())


@pytest.mark.slow
def test_a_build_hands_an_xpu_cell_to_the_oneapi_compiler(tmp_path, oneapi):
    files = {"one.cpp": "#include <cstdint>\nint64_t answer() { return SYCL_FLAG; }\n"}
    kernel = rendered.small_kernel(tmp_path / "kernel", XPU, files, backend="xpu")
    variants = rendered.run([sys.executable, "-m", "builder", "matrix", kernel, "--format", "names"]).output.split()
    variant = next(name for name in variants if "xpu20260-x86_64" in name)
    command = [sys.executable, "-m", "builder", "build", kernel, "--variant", variant, "--no-isolation", "--json"]
    command += ["--store", tmp_path / "store", "--output", tmp_path / "dist"]
    env = rendered.environment(ONEAPI_ROOT=oneapi, CXX=None, CC=None)
    done = rendered.run(command, env=env)
    (log,) = (tmp_path / "store/logs").glob("*xpu*.log")
    assert done.returncode == 0, done.output + log.read_text()
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        record = json.loads(archive.read("small/metadata.json"))["build"]
    assert "oneAPI" in record["toolchain"]["cxx-version"]
    other = rendered.run(command, env={**env, "CXX": shutil.which("g++")})
    assert other.returncode == 4
    assert "is not the C++ compiler of oneAPI, which XPU needs" in other.output


@pytest.mark.skipif(shutil.which("icpx") is not None, reason="icpx is installed")
def test_an_xpu_project_without_oneapi_says_what_is_missing(tmp_path):
    rendered.write_project(rendered.EXAMPLES / "relu", "xpu", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode != 0
    output = rendered.words(done.output)
    assert "no oneAPI compiler: looked for icpx and icx on PATH" in output
    assert "help: install the Intel oneAPI DPC++/C++ compiler" in output


def objc_compilers():
    for folder in (*sorted(Path("/usr/lib").glob("llvm-*/bin")), Path("/usr/bin")):
        if (folder / "clang").exists() and (folder / "clang++").exists():
            return folder / "clang", folder / "clang++"
    return None


@pytest.mark.skipif(objc_compilers() is None, reason=needs.lacking("clang, which knows Objective-C", "clang"))
def test_a_metal_project_plans_one_library_of_all_shaders(tmp_path):
    files = {
        "one/shader.metal": "",
        "two/shader.metal": "",
        "one.mm": "#include EMBEDDED_METALLIB_HEADER\n",
        "inc/a.h": "",
    }
    kernel = rendered.small_kernel(tmp_path / "kernel", METAL, files, backend="metal")
    project = rendered.write_project(kernel, "metal", tmp_path / "project", unique_id="x")
    lists = project["CMakeLists.txt"]
    assert lists.index("CMAKE_OSX_DEPLOYMENT_TARGET 26.0") < lists.index("project(")
    assert "LANGUAGES C CXX OBJC OBJCXX" in lists
    clang, clangxx = objc_compilers()
    compilers = (f"-DCMAKE_OBJC_COMPILER={clang}", f"-DCMAKE_OBJCXX_COMPILER={clangxx}")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *compilers)
    assert done.returncode == 0, done.output
    command = rendered.commands(tmp_path / "build")["one.mm"]
    assert "_small_metal_x_metallib.h" in command
    assert "-DEMBEDDED_METALLIB_NAMESPACE=_small_metal_x_metal" in command
    assert "-DMETAL_KERNEL" in command
    plan = rendered.run([tool("ninja"), "-C", tmp_path / "build", "-t", "commands"])
    assert plan.output.count("xcrun -sdk macosx metal ") == 2
    assert "metal/one/shader.metal.air" in plan.output
    assert "metal/two/shader.metal.air" in plan.output
    assert plan.output.count("xcrun -sdk macosx metallib ") == 1


@pytest.mark.skipif(objc_compilers() is None, reason=needs.lacking("clang, which knows Objective-C", "clang"))
def test_a_metal_project_of_two_libraries_plans_a_library_of_shaders_for_each(tmp_path):
    files = dict.fromkeys(("one/shader.metal", "two/shader.metal", "one.mm", "inc/a.h"), "")
    more = MORE.format(backend="metal", src='["one/shader.metal", "one.mm"]', key="MPS")
    kernel = rendered.small_kernel(tmp_path / "kernel", METAL + more, files, backend="metal")
    rendered.write_project(kernel, "metal", tmp_path / "project", unique_id="x")
    clang, clangxx = objc_compilers()
    compilers = (f"-DCMAKE_OBJC_COMPILER={clang}", f"-DCMAKE_OBJCXX_COMPILER={clangxx}")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *compilers)
    assert done.returncode == 0, done.output
    plan = rendered.run([tool("ninja"), "-C", tmp_path / "build", "-t", "commands"]).output
    assert plan.count("xcrun -sdk macosx metallib ") == 2
    assert plan.count("xcrun -sdk macosx metal ") == 3
    for name in ("_small_metal_x", "_small_more_metal_x"):
        assert f"-DEMBEDDED_METALLIB_NAMESPACE={name}_metal" in plan
