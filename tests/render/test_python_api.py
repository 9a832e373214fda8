"""Which kernels compile against Python's headers: those whose sources include them, and no others."""

import re
from pathlib import Path

import pytest

from builder import kernel, lint, render, resources, toml
from builder.config import Backend
from builder.render import source_scan
from builder.render.source_scan import PythonScan
from tests.given.files import write

CONFIG = """
[general]
name = "scale"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]
[torch]
src = ["torch-ext/torch_binding.cpp"]
[kernel.scale]
backend = "cpu"
depends = ["torch"]
src = ["cpu/scale.cpp"]
include = ["include"]
[kernel.scale-cuda]
backend = "cuda"
depends = ["torch"]
src = ["cuda/scale.cu"]
"""
BINDING = '#include <torch/library.h>\n#include "registration.h"\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n'


@pytest.fixture
def scale(tmp_path):
    """Write a kernel whose files are given, and read it."""

    standard = {
        "build.toml": CONFIG,
        "torch-ext/scale/__init__.py": "",
        "torch-ext/torch_binding.cpp": BINDING,
        "cpu/scale.cpp": "",
        "cuda/scale.cu": "",
    }
    return lambda **files: kernel.load(write(tmp_path, {**standard, **files}))


def test_a_kernel_that_registers_ops_needs_nothing_of_python(scale):
    project = render.render(scale(), Backend.CPU)
    assert not source_scan.needed_by(project)
    assert "Development" not in project["CMakeLists.txt"]
    assert "Python.h" not in project["torch-ext/registration.h"]
    assert 'wheel.py-api = "py3"' in project["pyproject.toml"]
    assert re.search(
        r'load_library\(Path\(__file__\)\.parent / "_scale_cpu_\w{7}\.so"\)', project["torch-ext/scale/_ops.py"]
    )


def test_a_source_that_includes_python_asks_for_its_headers_with_file_and_line(scale):
    project = render.render(scale(**{"cpu/scale.cpp": "\n#include <Python.h>\n"}), Backend.CPU)
    call = project["CMakeLists.txt"].split("kernel_python_headers(")[1].partition("\n)")[0]
    assert "SOURCE cpu/scale.cpp:2" in call
    assert 'USES "<Python.h>"' in call
    assert "API limited" in call
    assert "#include <Python.h>" in project["torch-ext/registration.h"]
    assert 'wheel.py-api = "cp39"' in project["pyproject.toml"]
    assert '.abi3.so"' in project["torch-ext/scale/_ops.py"]


def test_only_the_backend_whose_sources_ask_for_python_gets_it(scale):
    loaded = scale(**{"cuda/scale.cu": "#include <torch/extension.h>\n"})
    assert not source_scan.needed_by(render.render(loaded, Backend.CPU))
    assert source_scan.needed_by(render.render(loaded, Backend.CUDA))


@pytest.mark.parametrize(
    ("source", "header"),
    [
        ('#include "inner/a.h"', "include/inner/a.h"),
        ("#include <inner/a.h>", "include/inner/a.h"),
        ('#include "a.h"', "cpu/a.h"),
        ('#include "../include/a.h"', "include/a.h"),
    ],
    ids=["by a folder of the component", "in angles", "beside the source", "through the parent"],
)
def test_a_header_of_the_kernel_is_read_as_the_compiler_reads_it(scale, source, header):
    loaded = scale(**{"cpu/scale.cpp": source, header: "#pragma once\n#include <pybind11/pybind11.h>\n", "cpu/b.h": ""})
    use = render.python_scan(loaded, Backend.CPU).needs_headers
    if header == "cpu/a.h":
        assert use is None  # 'cpu' is no include folder of this kernel: its headers do not travel
    else:
        assert (use.file, use.line, use.name, use.limited) == (header, 2, "<pybind11/pybind11.h>", False)


def test_a_header_that_nothing_includes_does_not_count(scale):
    loaded = scale(**{"include/unused.h": "#include <Python.h>\n"})
    assert render.python_scan(loaded, Backend.CPU).needs_headers is None


@pytest.mark.parametrize(
    "text",
    [
        "// #include <Python.h>",
        "/*\n#include <torch/extension.h>\n*/",
        "int PyThing; // PyObject",
        '#include "Python.hpp"',
    ],
    ids=["a line comment", "a block comment", "a word in a comment", "another name"],
)
def test_what_only_looks_like_python_does_not_count(text):
    assert PythonScan.of(["a.cpp"], {"a.cpp": text.encode()}, directories=()).needs_headers is None


def test_names_of_the_c_api_count_without_an_include():
    use = PythonScan.of(
        ["a.cpp"], {"a.cpp": b'#include "registration.h"\nstatic PyObject* f();\n'}, directories=()
    ).needs_headers
    assert (use.line, use.name, use.limited) == (2, "PyObject", True)


def test_a_need_of_the_full_api_is_told_before_one_of_the_limited():
    files = {"a.cpp": b"#include <Python.h>\n", "b.cpp": b"\n#include <torch/extension.h>\n"}
    use = PythonScan.of(["a.cpp", "b.cpp"], files, directories=()).needs_headers
    assert (use.file, use.line, use.limited) == ("b.cpp", 2, False)


def test_headers_that_include_each_other_end():
    files = {"a.cpp": b'#include "b.h"', "b.h": b'#include "c.h"', "c.h": b'#include "b.h"'}
    assert PythonScan.of(["a.cpp"], files, directories=()).needs_headers is None


def test_a_registration_header_in_the_place_of_the_generated_one_does_not_count(scale):
    loaded = scale(**{"torch-ext/registration.h": "#include <Python.h>\n"})
    assert render.python_scan(loaded, Backend.CPU).needs_headers is None


def test_check_names_file_line_and_package_to_install(scale):
    loaded = scale(**{"cpu/scale.cpp": "\n  #include <torch/extension.h>\n"})
    (found,) = [located for located in lint.inspect(loaded.root).found if located.problem.code == "B125"]
    assert found.file.endswith("cpu/scale.cpp")
    assert (found.problem.span.line, found.problem.severity) == (2, "note")
    assert found.line == "  #include <torch/extension.h>"
    assert "python3-dev" in found.problem.help


@pytest.mark.torch
def test_the_headers_of_torch_that_include_python_are_those_of_its_include_lines():
    torch = pytest.importorskip("torch", reason="pip install torch")
    root = Path(torch.__file__).parent / "include"
    known = set(toml.loads((resources.DATA / "python-headers.toml").read_text(encoding="utf-8"))["torch"])
    direct = re.compile(
        r'^\s*#\s*include\s*[<"](?:Python\.h|pybind11/[^>"]+|structmember\.h|frameobject\.h)[>"]', re.MULTILINE
    )
    for path in sorted((root / "torch").rglob("*.h")):
        if direct.search(path.read_text(encoding="utf-8", errors="replace")):
            assert path.relative_to(root).as_posix() in known
