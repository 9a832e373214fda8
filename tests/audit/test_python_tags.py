"""Wheels for every Python: tagged py3-none where the library uses nothing of Python, cp39-abi3 where it does."""

import pytest

from tests.given.audits import findings

PLAIN = r"""
#include <stdint.h>
extern "C" {
int torch_library_impl(void *, const char *, void *, uint64_t);
__attribute__((visibility("default"))) void registers(void) { torch_library_impl(nullptr, "f", nullptr, HEADERSULL); }
}
"""
ANY = "py3-none-manylinux_2_28_x86_64"
OPS = "_demo_cpu_0000001"

pytestmark = pytest.mark.cmake


def test_a_library_that_uses_nothing_of_python_is_for_every_python(compiler, make_wheel):
    assert not findings(make_wheel(library=compiler.library(base=PLAIN), tag=ANY))


def test_a_module_of_the_limited_api_still_is(compiler, make_wheel):
    assert not findings(make_wheel(library=compiler.library()))


def test_a_library_that_uses_python_is_not_for_every_python(compiler, make_wheel):
    assert findings(make_wheel(library=compiler.library(), tag=ANY)) == {("abi3", "PyModule_Create2")}


@pytest.mark.parametrize("tag", ["cp311-none-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_28_x86_64"])
def test_a_wheel_for_one_python_alone_is_found(compiler, make_wheel, tag):
    found = findings(make_wheel(library=compiler.library(base=PLAIN), tag=tag))
    assert ("layout", tag) in found


def test_a_library_that_is_imported_and_is_no_module_is_found(compiler, make_wheel):
    library = compiler.library(base=PLAIN)
    assert findings(make_wheel(library=library)) == {("layout", f"PyInit_{OPS}")}


def test_a_library_that_is_loaded_needs_no_module(compiler, make_wheel):
    text = f'import torch\ntorch.ops.load_library("{OPS}.abi3.so")\nops = torch.ops.{OPS}\n'.encode()
    assert not findings(make_wheel(library=compiler.library(base=PLAIN), package={"_ops.py": text}))


def test_a_library_under_the_other_name_is_found(compiler, make_wheel):
    package = {f"{OPS}.abi3.so": compiler.library(base=PLAIN)}
    found = findings(make_wheel(package=package, tag=ANY))
    assert found == {("layout", f"demo/{OPS}.so"), ("layout", f"demo/{OPS}.abi3.so")}
