"""Projects of kernels whose library is compiled for each Python."""

import pytest

from builder import kernel, render
from builder.config import Backend
from builder.render import source_scan
from tests.given.files import write

CONFIG = """
[general]
name = "scale"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]
[torch]
src = ["binding.cpp"]
python-abi = "cpython"
[kernel.scale]
backend = "cpu"
depends = ["torch"]
src = ["scale.cpp"]
"""
MODULE = "#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"


@pytest.fixture
def project(tmp_path):
    """Render a kernel with this binding."""

    files = {"torch-ext/scale/__init__.py": "", "scale.cpp": ""}
    return lambda binding, backend=Backend.CPU, config=CONFIG: render.render(
        kernel.load(write(tmp_path, {**files, "binding.cpp": binding, "build.toml": config})), backend, unique_id="1"
    )


def test_the_module_of_a_source_is_imported_beside_the_ops(project):
    found = project(MODULE)
    ops = found["torch-ext/scale/_ops.py"]
    assert "from . import _scale_cpu_1\n\nmodule = _scale_cpu_1\nops = torch.ops._scale_cpu_1\n" in ops
    assert ops.index("import torch") < ops.index("from . import")
    compile(ops, "_ops.py", "exec")


@pytest.mark.parametrize(
    "binding",
    ["#include <torch/extension.h>\n", "// PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n", ""],
    ids=["no module", "a comment", "nothing of Python"],
)
def test_a_library_that_is_no_module_is_loaded_under_the_name_of_this_python(project, binding):
    ops = project(binding)["torch-ext/scale/_ops.py"]
    assert 'load_library(Path(__file__).parent / f"_scale_cpu_1{EXTENSION_SUFFIXES[0]}")' in ops
    assert "module" not in ops.replace("importlib", "").partition("ops = ")[2]
    compile(ops, "_ops.py", "exec")


def test_the_library_is_a_module_for_the_python_that_builds_it(project):
    found = project(MODULE)
    lists = found["CMakeLists.txt"]
    assert "kernel_python_module(" in lists
    assert "kernel_python_headers" not in lists
    assert source_scan.needed_by(found)
    assert "wheel.py-api" not in found["pyproject.toml"]
    assert "cmake/python/headers.cmake" not in found.files


def test_the_source_with_the_module_is_compiled_with_its_name(project):
    assert "NAME_IN\n    binding.cpp" in project(MODULE)["CMakeLists.txt"]


def test_a_backend_without_a_component_knows_nothing_of_it(project):
    found = project(MODULE, Backend.CUDA)
    assert "CMakeLists.txt" not in found.files
    assert 'wheel.py-api = "py3"' in found["pyproject.toml"]


def test_a_header_may_define_the_module():
    files = {"a.cpp": b'#include "m.h"', "m.h": b"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"}
    assert source_scan.defines_module(["a.cpp"], files)
    assert not source_scan.defines_module(["a.cpp"], {"a.cpp": b"int MY_PYBIND11_MODULE;"})
