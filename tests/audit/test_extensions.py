"""Wheels of several libraries: all are named by `metadata.json`, loaded by a module of their own, and judged."""

import json

import pytest

from builder import audit
from builder.audit import layout, metadata_json
from builder.audit.subject import AuditPromise, File, FrameworkClaim, Library, Subject
from builder.binary.elf_symbols import Symbol
from builder.binary.extension import Extension
from builder.config.values import Backend, Framework, Version
from builder.wheel.archive import Wheel

MAIN, MORE = "_demo_cpu_1", "_demo_moe_cpu_1"
SAID = {"moe": MORE}
FILES = {"_ops.py": f"from . import {MAIN}\n", "_ops_moe.py": f"from . import {MORE}\n"}


def library(ops, *, module=True):
    defined = (Symbol(name=f"PyInit_{ops}", defined=True, binding="global"),) if module else ()
    return Library(extension=Extension(name=f"demo/{ops}.abi3.so", defined=defined))


BOTH = (library(MAIN), library(MORE))


def found(*libraries, extensions=SAID, files=FILES, ops=MAIN, promised=None):
    texts = {f"demo/{name}": text.encode() for name, text in files.items()}
    texts["demo/metadata.json"] = json.dumps({"id": ops, "extensions": extensions}).encode()
    names = ("demo/__init__.py", *texts, *(each.name for each in libraries))
    subject = Subject(
        name="demo",
        version="1",
        dist_info="demo-1.dist-info",
        tags=("cp39-abi3-any",),
        facts=FrameworkClaim(framework=Framework.TORCH, backend=Backend.CPU, version=Version("2.13")),
        files={name: File(size=0, sha256=b"") for name in names},
        texts=texts,
        libraries=libraries,
        plan=AuditPromise(extensions=promised),
    )
    findings = {(each.file, each.symbol) for each in (*layout.check(subject), *metadata_json.check(subject))}
    about = ("demo/_", "demo/o", "_demo", "PyInit", "extensions")
    return {(file, symbol) for file, symbol in findings if symbol.startswith(about)}


def test_the_libraries_that_are_named_and_loaded_are_right():
    assert found(*BOTH) == set()


def test_a_library_of_an_extension_that_is_missing_is_found():
    assert found(library(MAIN)) == {(f"demo/{MORE}.abi3.so", f"demo/{MORE}.abi3.so")}


def test_a_library_that_nothing_names_is_found():
    assert found(*BOTH, library("other")) == {("demo/other.abi3.so", "demo/other.abi3.so")}
    assert found(*BOTH, extensions={}) == {(f"demo/{MORE}.abi3.so", f"demo/{MORE}.abi3.so")}


def test_the_module_that_loads_an_extension_is_missing():
    assert found(*BOTH, files={"_ops.py": FILES["_ops.py"]}) == {("demo/_ops_moe.py", "demo/_ops_moe.py")}


def test_the_module_that_loads_an_extension_names_its_library():
    assert ("demo/_ops_moe.py", MORE) in found(*BOTH, files={**FILES, "_ops_moe.py": "ops = None\n"})


def test_an_extension_that_is_imported_as_a_module_defines_it():
    assert found(BOTH[0], library(MORE, module=False)) == {(f"demo/{MORE}.abi3.so", f"PyInit_{MORE}")}


@pytest.mark.parametrize(
    "extensions",
    [
        1,
        "moe",
        ["moe"],
        {"moe": 1},
        {"../x": MORE},
        {"moe": "../x"},
        {"moe": "a\n"},
        {"moe": MAIN},
        {"a": "x", "b": "x"},
    ],
    ids=str,
)
def test_extensions_that_are_none_are_found(extensions):
    assert ("demo/metadata.json", "extensions") in found(*BOTH, extensions=extensions)


@pytest.mark.cmake
def test_symbols_of_every_library_are_judged(make_wheel, compiler):
    bad = compiler.library('extern "C" void *_PyLong_New(long); void *f() { return _PyLong_New(1); }')
    ops = "_demo_moe_cpu_0000001"
    path = make_wheel(
        library=compiler.library(),
        package={f"{ops}.abi3.so": bad, "_ops_moe.py": f"from . import {ops}\n".encode()},
        metadata={"extensions": {"moe": ops}},
    )
    findings = audit.run(Wheel.read(path)).findings
    assert {(each.file, each.symbol) for each in findings if each.rule == "abi3"} == {
        (f"demo/{ops}.abi3.so", "_PyLong_New")
    }


def test_an_id_of_another_type_is_no_error_of_the_audit():
    assert ("demo/metadata.json", "extensions") not in found(*BOTH, ops=[])


def test_a_wheel_has_the_extensions_of_its_cell_and_no_other():
    path = "demo/metadata.json"
    assert found(*BOTH, promised=frozenset({"moe"})) == set()
    assert found(*BOTH, promised=frozenset()) == {(path, "extensions.moe")}
    alone = {"extensions": {}, "files": {"_ops.py": FILES["_ops.py"]}}
    assert found(library(MAIN), **alone, promised=frozenset()) == set()
    assert found(library(MAIN), **alone, promised=frozenset({"moe"})) == {(path, "extensions.moe")}
