"""What a plain library exports, compared with what its metadata.json promises."""

import pytest

from builder.audit import exports
from builder.config.values import Framework
from tests.given.audits import library, subject


def found(names, globs=("cscale_*",), framework=Framework.CTYPES):
    wheel = subject(library(defined=names), framework=framework, metadata={"exports": globs})
    return [(finding.file, finding.symbol) for finding in exports.check(wheel)]


def test_a_library_with_what_it_promises_passes():
    assert found(["cscale_float", "cscale_half"]) == []
    assert found(["a", "cscale_x"], globs=["cscale_*", "a"]) == []


def test_a_promise_that_nothing_keeps_is_a_finding():
    assert found(["cscale_float"], globs=["cscale_*", "cquantize_*"]) == [("demo/a.so", "cquantize_*")]


def test_a_symbol_that_nobody_asked_for_is_a_finding():
    assert found(["_ZSt4move", "cscale_float", "helper"]) == [("demo/a.so", "_ZSt4move"), ("demo/a.so", "helper")]


@pytest.mark.parametrize(
    "globs",
    [None, [], "cscale_*", [1], ["*"], ["f\n"], ["f"] * 1001],
    ids=["null", "none", "text", "number", "all", "newline", "many"],
)
def test_a_wheel_that_promises_nothing_that_can_be_judged_is_a_finding(globs):
    assert found(["cscale_float"], globs=globs) == [("demo/metadata.json", "exports")]


def test_kernels_with_a_framework_export_what_they_like():
    assert found(["helper"], framework=Framework.TVM_FFI) == []
