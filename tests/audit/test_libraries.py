"""Which libraries a wheel has: the one that its metadata names, which its `_ops.py` can import."""

import json

import pytest

from builder.audit import layout
from builder.audit.subject import File, FrameworkClaim, Library, Subject
from builder.binary.elf_symbols import Symbol
from builder.binary.extension import Extension
from builder.config.values import Backend, Framework, Version

OPS = "_demo_cpu_1"
NAME = f"demo/{OPS}.abi3.so"
IMPORT = f"import torch\nfrom . import {OPS}\nops = torch.ops.{OPS}\n"


def library(name=NAME, *, modules=(OPS,)):
    defined = tuple(Symbol(name=f"PyInit_{each}", defined=True, binding="global") for each in modules)
    return Library(extension=Extension(name=name, defined=defined))


def found(*libraries, ops=IMPORT, framework=Framework.TORCH):
    files = {each.name: File(size=0, sha256=b"") for each in libraries}
    subject = Subject(
        name="demo",
        version="1",
        dist_info="demo-1.dist-info",
        tags=("cp39-abi3-any",),
        facts=FrameworkClaim(framework=framework, backend=Backend.CPU, version=Version("2.13")),
        files=files,
        texts={"demo/_ops.py": ops.encode(), "demo/metadata.json": json.dumps({"id": OPS}).encode()},
        libraries=libraries,
    )
    about = ("is not in the wheel", "belongs to the package", "imports the library as", "noarch")
    findings = [each for each in layout.check(subject) if any(part in each.why for part in about)]
    return [(each.file, each.symbol) for each in findings if each.symbol.startswith(("PyInit", "demo/_", "demo/o"))]


def test_the_library_that_is_named_and_imported_is_right():
    assert found(library()) == []


def test_a_library_that_is_named_and_missing_is_found():
    assert found() == [(NAME, NAME)]


def test_every_library_that_is_not_named_is_found():
    assert found(library("demo/o1.so"), library(), library("demo/o2.so")) == [
        ("demo/o1.so", "demo/o1.so"),
        ("demo/o2.so", "demo/o2.so"),
    ]


@pytest.mark.parametrize("modules", [(), ("other",)], ids=str)
def test_a_library_that_is_imported_as_a_module_defines_it(modules):
    assert found(library(modules=modules)) == [(NAME, f"PyInit_{OPS}")]


@pytest.mark.parametrize(
    "ops", ["", f"torch.ops.load_library('{OPS}')\n", f"from . import {OPS}2\n", f"  {IMPORT[13:]}"]
)
def test_a_library_that_is_loaded_and_not_imported_needs_no_module(ops):
    assert found(library(modules=()), ops=ops) == []


def test_the_library_of_another_framework_is_no_module():
    assert found(library(modules=()), framework=Framework.TVM_FFI) == []


def test_a_wheel_of_python_alone_has_no_library():
    assert found(library(), framework=Framework.TORCH_NOARCH) == [(NAME, NAME)]
