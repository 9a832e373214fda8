"""Which libraries a wheel has: the one that its metadata names, which its `_ops.py` can import."""

import pytest

from builder.audit import layout
from builder.config.values import Framework
from tests.given.audits import library, subject

OPS = "_demo_cpu_1"
NAME = f"demo/{OPS}.abi3.so"
IMPORT = f"import torch\nfrom . import {OPS}\nops = torch.ops.{OPS}\n"


RIGHT = library(NAME, defined=(f"PyInit_{OPS}",))
LOADED = library(NAME)


def found(*libraries, ops=IMPORT, framework=Framework.TORCH):
    wheel = subject(*libraries, framework=framework, texts={"demo/_ops.py": ops}, metadata={"id": OPS})
    about = ("is not in the wheel", "belongs to the package", "imports the library as", "noarch")
    findings = [each for each in layout.check(wheel) if any(part in each.why for part in about)]
    return [(each.file, each.symbol) for each in findings if each.symbol.startswith(("PyInit", "demo/_", "demo/o"))]


def test_the_library_that_is_named_and_imported_is_right():
    assert found(RIGHT) == []


def test_a_library_that_is_named_and_missing_is_found():
    assert found() == [(NAME, NAME)]


def test_every_library_that_is_not_named_is_found():
    assert found(library("demo/o1.so"), RIGHT, library("demo/o2.so")) == [
        ("demo/o1.so", "demo/o1.so"),
        ("demo/o2.so", "demo/o2.so"),
    ]


@pytest.mark.parametrize("defined", [(), ("PyInit_other",)], ids=str)
def test_a_library_that_is_imported_as_a_module_defines_it(defined):
    assert found(library(NAME, defined=defined)) == [(NAME, f"PyInit_{OPS}")]


@pytest.mark.parametrize(
    "ops", ["", f"torch.ops.load_library('{OPS}')\n", f"from . import {OPS}2\n", f"  {IMPORT[13:]}"]
)
def test_a_library_that_is_loaded_and_not_imported_needs_no_module(ops):
    assert found(LOADED, ops=ops) == []


def test_the_library_of_another_framework_is_no_module():
    assert found(LOADED, framework=Framework.TVM_FFI) == []


def test_a_wheel_of_python_alone_has_no_library():
    assert found(RIGHT, framework=Framework.TORCH_NOARCH) == [(NAME, NAME)]
