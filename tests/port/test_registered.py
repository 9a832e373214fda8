"""Libraries whose ops are registered: no module of Python is made of them, and it is said how each is loaded."""

import pytest

from builder.config import Backend
from builder.port import source_facts
from builder.render import source_scan
from tests.port.projects import CUDA, PLAIN, ported, write

SETUP = """
from setuptools import setup
import torch
from torch.utils.cpp_extension import CppExtension, CUDAExtension
made = []
for name in ("scatter", "version"):
    made.append(CppExtension(f"scale_it._{name}_cpu", [f"csrc/{name}.cpp"]))
    if torch.cuda.is_available():
        sources = [f"csrc/{name}.cpp", "csrc/scale.cu"]
        made.append(CUDAExtension(f"scale_it._{name}_cuda", sources, define_macros=[("WITH_CUDA", None)]))
setup(name="scale_it", packages=["scale_it"], ext_modules=made)
"""
WINDOWS = "#ifdef _WIN32\nPyMODINIT_FUNC PyInit__scatter_cpu(void) { return NULL; }\n#endif\n"
FILES = {
    "csrc/scatter.cpp": WINDOWS + 'TORCH_LIBRARY(scatter, m) { m.def("a() -> ()"); }\n',
    "csrc/version.cpp": WINDOWS + 'static auto made = torch::RegisterOperators().op("scatter::b", [] { return 1; });\n',
    "scale_it/__init__.py": "import torch\n\ntorch.ops.load_library(found)\n",
}


def test_what_is_registered_needs_no_wheel_for_each_python(tmp_path):
    config = ported(tmp_path, SETUP, CUDA, PLAIN, files=FILES).config
    assert not any(config.of_each_python(backend) for backend in (Backend.CPU, Backend.CUDA))
    assert list(config.extension) == ["scatter_cuda", "version_cpu", "version_cuda"]


def test_the_line_that_loads_a_library_is_named_with_what_loads_each(tmp_path):
    remaining = ported(tmp_path, SETUP, CUDA, PLAIN, files=FILES).remaining
    names = "_ops, _ops_scatter_cuda, _ops_version_cpu, _ops_version_cuda"
    assert (
        f"scale_it/__init__.py:3: in place of this, write: from . import {names}, each of which loads its library"
        in remaining
    )


def test_libraries_that_register_the_same_are_named(tmp_path):
    remaining = ported(tmp_path, SETUP, CUDA, PLAIN, files=FILES).remaining
    text = "'_ops_scatter_cuda' and '_ops' register the same ops, those of 'csrc/scatter.cpp': import one of the two"
    assert f"setup.py:10: {text}" in remaining


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n", True),
        ("PyMODINIT_FUNC PyInit_own(void) { return 0; }\n", True),
        ("PyMODINIT_FUNC PyInit_own(void) { return 0; }\nTORCH_LIBRARY(own, m) {}\n", False),
        ("PyMODINIT_FUNC PyInit_own(void) { return 0; }\nauto x = torch::RegisterOperators();\n", False),
        ("TORCH_LIBRARY(own, m) {}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n", True),
        (WINDOWS, False),
        (f"{WINDOWS}#ifndef _WIN32\nPyMODINIT_FUNC PyInit_own(void);\n#endif\n", True),
    ],
    ids=["pybind11", "of its own", "beside a library", "beside operators", "both", "of Windows", "of all others"],
)
def test_a_source_makes_a_module_of_python_for_port_and_for_render_alike(tmp_path, text, module):
    write(tmp_path, "", {"a.cpp": text})
    assert source_facts.makes_module(tmp_path, "a.cpp") is module
    assert source_scan.defines_module(["a.cpp"], {"a.cpp": text.encode()}) is module


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b"a\n#ifdef _WIN32\nb\n#else\nc\n#endif\nd\n", [b"a", b"c", b"d"]),
        (b"#if defined(_WIN32)\nb\n#if X\nc\n#endif\nd\n#endif\ne\n", [b"e"]),
        (b"#ifndef _MSC_VER\nb\n#else\nc\n#endif\n", [b"b"]),
        (b"#if defined(_WIN32) && X\nb\n#endif\n", [b"b"]),
        (b"#ifdef _WIN32\nb\n#elif X\nc\n#endif\n", [b"c"]),
        (b"#ifdef _WIN32\nb\n#elif X\nc\n#else\nd\n#endif\n", [b"c", b"d"]),
        (b"#endif\n#else\nb // _WIN32\n", [b"b // _WIN32"]),
    ],
    ids=["else", "nested", "not", "more than that", "elif", "elif and else", "without a beginning"],
)
def test_only_what_windows_alone_compiles_is_blank(text, left):
    found = source_scan.without_windows(text)
    assert found.count(b"\n") == text.count(b"\n")
    assert [line for line in found.splitlines() if line and not line.startswith(b"#")] == left
