"""What stands in the way of one wheel for every Python, and what asks for one for each."""

import pytest

from builder import lint
from builder.cli import run
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
{key}
[kernel.scale]
backend = "cpu"
depends = ["torch"]
src = ["scale.cpp"]
include = ["include"]
[kernel.scale-cuda]
backend = "cuda"
depends = ["torch"]
src = ["scale.cu"]
"""
KEY = 'python-abi = "cpython"'
MODULE = "#include <torch/extension.h>\n\n  PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"


@pytest.fixture
def check(tmp_path):
    """Check a kernel; return code, severity, file and line of what is said of Python."""

    def inspected(binding, *, key="", header=""):
        files = {
            "build.toml": CONFIG.format(key=key),
            "torch-ext/scale/__init__.py": "",
            "binding.cpp": binding,
            "scale.cpp": '#include "h.h"\n',
            "scale.cu": "",
            "include/h.h": header,
        }
        write(tmp_path, files)
        every = [(one.file.rpartition("/")[2], one.problem) for one in lint.inspect(tmp_path).found]
        mine = [(file, one) for file, one in every if one.code in {"B125", "B141", "B142", "B143", "B144"}]
        return [(one.code, one.severity, file, one.span.line) for file, one in mine]

    return inspected


def test_a_module_without_the_key_is_told_of_it_at_its_line(check, tmp_path):
    assert check(MODULE) == [("B141", "warning", "binding.cpp", 3)]
    (found,) = [one for one in lint.inspect(tmp_path).found if one.problem.code == "B141"]
    assert 'python-abi = "cpython"' in found.problem.help
    assert found.problem.span.column == 3


def test_with_the_key_every_line_that_stands_in_the_way_is_named_once(check):
    found = check(MODULE, key=KEY, header="#pragma once\n#include <pybind11/stl.h>\n")
    assert found == [
        ("B142", "note", "binding.cpp", 1),
        ("B142", "note", "binding.cpp", 3),
        ("B142", "note", "h.h", 2),
    ]


@pytest.mark.parametrize(
    ("binding", "line"),
    [
        pytest.param("PYBIND11_MODULE(_C, m) {}\n", 1, id="a name"),
        pytest.param("\n  PYBIND11_MODULE(\n    _C, m) {}\n", 3, id="a name on a line of its own"),
        pytest.param("#define MODULE PYBIND11_MODULE(_C, m)\n", None, id="in a macro"),
        pytest.param("PYBIND11_MODULE ( TORCH_EXTENSION_NAME , m) {}\n", None, id="the name of the build"),
    ],
)
def test_a_module_with_a_name_of_its_own_is_said_at_the_name(check, binding, line):
    found = [place for code, _, _, place in check(binding, key=KEY) if code == "B144"]
    assert found == ([] if line is None else [line])


def test_a_key_that_nothing_needs_is_said(check):
    assert check("#include <torch/library.h>\n", key=KEY) == [("B143", "warning", "build.toml", 10)]


@pytest.mark.parametrize(
    ("binding", "code"),
    [
        pytest.param("#include <torch/extension.h>\n", ["B125"], id="a header alone"),
        pytest.param("#include <Python.h>\nPyMODINIT_FUNC PyInit_x(void);\n", ["B125"], id="a module by hand"),
        pytest.param("// PYBIND11_MODULE(x, m)\n", [], id="a comment"),
        pytest.param("NB_MODULE(x, m) {}\n", ["B141"], id="nanobind"),
        pytest.param("int NOT_PYBIND11_MODULES;\n", [], id="another name"),
    ],
)
def test_what_a_wheel_for_every_python_can_have_is_no_module(check, binding, code):
    assert [found[0] for found in check(binding)] == code


def test_sources_that_are_missing_say_nothing_of_the_key(check, tmp_path):
    check("", key=KEY)
    (tmp_path / "scale.cu").unlink()
    assert not [one for one in lint.inspect(tmp_path).found if one.problem.code == "B143"]


def test_the_public_kernel_builder_reads_no_such_key(check, tmp_path, capsys):
    check(MODULE, key=KEY)
    assert run(["check", str(tmp_path), "--format", "json"]) == 0
    assert "B130" in capsys.readouterr().out
