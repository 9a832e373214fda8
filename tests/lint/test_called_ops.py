"""Calls of ops that nothing registers, as far as reading the sources tells."""

import pytest

from builder import lint
from builder.lint.registration import PythonFile, unregistered
from tests.given.files import write

REGISTERED = frozenset({"scale", "rms_norm"})


def called(text, *, file="relu/layers.py", name="relu.layers", registered=REGISTERED):
    found = unregistered([PythonFile(text=text, file=file, name=name, package=False)], registered)
    return [(each.problem.message.split("'")[1], each.line.strip(), each.problem.help) for each in found]


@pytest.mark.parametrize(
    "text",
    [
        "from ._ops import ops\ndef f(x):\n    ops.scal(x)",
        "from ._ops import ops\ndef f(x):\n    ops.scal.default(x)",
        "from . import _ops\ndef f(x):\n    _ops.ops.scal(x)",
        "def f(x):\n    from ._ops import ops as o\n    o.scal(x)",
        "from ._ops import ops\nclass A:\n  def f(self, x):\n    return [ops.scal(y) for y in x]",
        "from ._ops_moe import ops\nops.scal(1)",
        "from ._ops import *\nops.scal(1)",
        "from ._ops import ops\nscal = ops.scal\nscal(1)",
    ],
)
def test_a_call_under_another_name_is_found_with_what_was_meant(text):
    ((name, line, remedy),) = called(text)
    assert (name, remedy) == ("scal", "did you mean 'scale'?")
    assert "scal" in line


@pytest.mark.parametrize(
    "text",
    [
        "from ._ops import ops\nops.scale(1)\nops.rms_norm.out(1)",
        "import ops\nops.scal(1)",
        "from .other import ops\nops.scal(1)",
        "from ._ops import ops\ndef f(ops):\n    ops.scal(1)",
        "from ._ops import ops\nif hasattr(ops, 'scal'):\n    ops.scal(1)",
        "from ._ops import add_op_namespace_prefix, ops\nNAME = add_op_namespace_prefix('scal')\nops.scal(1)",
        "from ._ops import ops\nprint(ops.name, ops.__name__)",
        "import torch\ntorch.ops.relu.scal(1)",
    ],
)
def test_what_is_registered_or_may_be_is_no_finding(text):
    assert called(text) == []


CONFIG = """
[general]
name = "relu"
version = 1
edition = 5
license = "MIT"
backends = ["cpu", "cuda"]
[torch]
src = ["torch-ext/torch_binding.cpp"]
[kernel.a]
backend = "cpu"
depends = ["torch"]
src = ["a.cpp"]
[kernel.b]
backend = "cuda"
depends = ["torch"]
src = ["b.cu"]
"""
BINDING = 'TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("scale(Tensor x) -> Tensor"); }\n'


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        pytest.param({}, ["B148"], id="no source"),
        pytest.param({"b.cu": 'void f(L &ops) { ops.def("scal() -> ()"); }'}, [], id="a source of another backend"),
        pytest.param({"a.cpp": "#define OP(name) ops.def(#name)"}, [], id="a macro that makes names"),
        pytest.param({"torch-ext/torch_binding.cpp": "REGISTER(scale)"}, [], id="no registration to be read"),
    ],
)
def test_a_kernel_is_refused_where_all_its_registrations_can_be_read(tmp_path, changes, codes):
    python = "from ._ops import ops\n\n\ndef f(x):\n    return ops.scal(x)\n"
    files = {"build.toml": CONFIG, "torch-ext/torch_binding.cpp": BINDING, "a.cpp": "", "b.cu": ""}
    root = write(tmp_path / "relu", {**files, "torch-ext/relu/__init__.py": python, **changes})
    report = lint.inspect(root)
    assert [each.problem.code for each in report.found if each.problem.severity == "error"] == codes
    for each in report.found:
        if each.problem.code == "B148":
            assert (each.file.endswith("relu/__init__.py"), each.problem.span.line) == (True, 5)
