"""Wheels of several libraries: all are named by `metadata.json`, loaded by a module of their own, and judged."""

import pytest

from builder import audit
from builder.audit import layout, metadata_json
from builder.audit.subject import AuditPromise
from builder.wheel.archive import Wheel
from tests.given.audits import library, subject

MAIN, MORE = "_demo_cpu_1", "_demo_moe_cpu_1"
SAID = {"moe": MORE}
FILES = {"_ops.py": f"from . import {MAIN}\n", "_ops_moe.py": f"from . import {MORE}\n"}


def found(*modules, loaded=(), extensions=SAID, files=FILES, ops=MAIN, promised=None):
    """Return the findings about a wheel of libraries that are the modules of these names, or are `loaded` otherwise."""
    libraries = [library(f"demo/{each}.abi3.so", defined=(f"PyInit_{each}",)) for each in modules]
    wheel = subject(
        *libraries,
        *(library(f"demo/{each}.abi3.so") for each in loaded),
        files=("demo/__init__.py",),
        texts={f"demo/{name}": text for name, text in files.items()},
        metadata={"id": ops, "extensions": extensions},
        plan=AuditPromise(extensions=promised),
    )
    findings = {(each.file, each.symbol) for each in (*layout.check(wheel), *metadata_json.check(wheel))}
    about = ("demo/_", "demo/o", "_demo", "PyInit", "extensions")
    return {(file, symbol) for file, symbol in findings if symbol.startswith(about)}


def test_the_libraries_that_are_named_and_loaded_are_right():
    assert found(MAIN, MORE) == set()


def test_a_library_of_an_extension_that_is_missing_is_found():
    assert found(MAIN) == {(f"demo/{MORE}.abi3.so", f"demo/{MORE}.abi3.so")}


def test_a_library_that_nothing_names_is_found():
    assert found(MAIN, MORE, "other") == {("demo/other.abi3.so", "demo/other.abi3.so")}
    assert found(MAIN, MORE, extensions={}) == {(f"demo/{MORE}.abi3.so", f"demo/{MORE}.abi3.so")}


def test_the_module_that_loads_an_extension_is_missing():
    assert found(MAIN, MORE, files={"_ops.py": FILES["_ops.py"]}) == {("demo/_ops_moe.py", "demo/_ops_moe.py")}


def test_the_module_that_loads_an_extension_names_its_library():
    assert ("demo/_ops_moe.py", MORE) in found(MAIN, MORE, files={**FILES, "_ops_moe.py": "ops = None\n"})


def test_an_extension_that_is_imported_as_a_module_defines_it():
    assert found(MAIN, loaded=(MORE,)) == {(f"demo/{MORE}.abi3.so", f"PyInit_{MORE}")}


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
    assert ("demo/metadata.json", "extensions") in found(MAIN, MORE, extensions=extensions)


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
    assert ("demo/metadata.json", "extensions") not in found(MAIN, MORE, ops=[])


def test_a_wheel_has_the_extensions_of_its_cell_and_no_other():
    path = "demo/metadata.json"
    assert found(MAIN, MORE, promised=frozenset({"moe"})) == set()
    assert found(MAIN, MORE, promised=frozenset()) == {(path, "extensions.moe")}
    alone = {"extensions": {}, "files": {"_ops.py": FILES["_ops.py"]}}
    assert found(MAIN, **alone, promised=frozenset()) == set()
    assert found(MAIN, **alone, promised=frozenset({"moe"})) == {(path, "extensions.moe")}
