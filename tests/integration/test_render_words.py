"""Keys that only this builder reads, in projects that real CMake and real compilers build."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest


def sibling(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rendered = sibling("rendered")

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.skipif(not rendered.has("torch"), reason="torch is not installed beside the tests"),
]
nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
ANSWER = "#include <cstdint>\nint64_t answer() { return 42; }\n"


def component(name, lines="", *, backend="cpu", source="one.cpp"):
    return f'\n[kernel.{name}]\nbackend = "{backend}"\ndepends = []\nsrc = ["{source}"]\n{lines}\n'


def configure(tmp_path, components, files, *definitions, backend="cpu"):
    kernel = rendered.small_kernel(tmp_path / "kernel", components, files, backend=backend)
    rendered.write_project(kernel, backend, tmp_path / "project")
    return rendered.configure(tmp_path / "project", tmp_path / "build", *definitions)


def built(tmp_path, components, files, *definitions, backend="cpu"):
    """Configure, compile and install; return the library."""
    done = configure(tmp_path, components, files, *definitions, backend=backend)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed/small").glob("*.so")
    return library


def needed(library):
    done = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    return {line.partition("[")[2].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line}


@pytest.mark.cuda
@nvcc
def test_a_kernel_is_linked_to_the_driver_on_a_machine_without_one(tmp_path):
    lines = 'libraries = ["cuda_driver", "dl", "rt"]\ncuda-capabilities = ["9.0"]'
    source = "#include <cuda.h>\n#include <cstdint>\nint64_t answer() { int n; cuDeviceGetCount(&n); return n; }\n"
    library = built(
        tmp_path, component("one", lines, backend="cuda", source="one.cu"), {"one.cu": source}, backend="cuda"
    )
    assert "libcuda.so.1" in needed(library)


@pytest.mark.cuda
@nvcc
def test_a_library_that_the_toolkit_lacks_is_named_with_a_remedy(tmp_path):
    lines = 'libraries = ["nvjpeg"]\ncuda-capabilities = ["9.0"]'
    if (Path(shutil.which("nvcc")).resolve().parent.parent / "lib64/libnvjpeg.so").exists():
        pytest.skip("this toolkit has libnvjpeg")
    done = configure(
        tmp_path, component("one", lines, backend="cuda", source="one.cu"), {"one.cu": ANSWER}, backend="cuda"
    )
    assert done.returncode != 0
    assert "the kernel is linked to CUDA::nvjpeg, and the toolkit found has no such library" in rendered.words(
        done.output
    )
