"""Ops that a Python file registers outside the namespace of the build are found, and no others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.lint.registration import PythonFile, check, judge

HEAD = "import torch\nfrom ._ops import add_op_namespace_prefix, ops\n"


def judged(text, **others):
    """Return the code and the quoted text of each finding in a package of one file, or of several."""
    files = [PythonFile(text=text, file="relu/__init__.py", name="relu", package=True)]
    for name, other in others.items():
        files.append(PythonFile(text=other, file=f"relu/{name}.py", name=f"relu.{name}", package=False))
    spans = [(located, located.problem.span) for located in judge(files)]
    return [(each.problem.code, each.line[span.column - 1 : span.end_column - 1]) for each, span in spans]


FOREIGN = {
    "decorator": '@torch.library.custom_op("relu::f", mutates_args=())\ndef f(x): ...',
    "keyword": 'torch.library.register_fake(op="relu::f")',
    "qualname": 'torch.library.define(qualname="relu::f", schema="()")',
    "triton": '@torch.library.triton_op("relu::f", mutates_args={})\ndef f(x): ...',
    "register_kernel": '@torch.library.register_kernel("relu::f", "cuda")\ndef f(x): ...',
    "register_autograd": 'torch.library.register_autograd("relu::f", None)',
    "register_vmap": 'torch.library.register_vmap("relu::f", None)',
    "register_autocast": 'torch.library.register_autocast("relu::f", "cuda", None)',
    "register_torch_dispatch": 'torch.library.register_torch_dispatch("relu::f", None)',
    "a later register function": 'torch.library.register_whatever("relu::f", None)',
    "impl": '@torch.library.impl("relu::f", "CUDA")\ndef f(x): ...',
    "impl_abstract": '@torch.library.impl_abstract("relu::f")\ndef f(x): ...',
    "define": 'torch.library.define("relu::f", "(Tensor x) -> Tensor")',
    "library": 'lib = torch.library.Library("relu::f", "DEF")',
    "scoped library": 'with torch.library._scoped_library("relu::f", "DEF") as lib: ...',
    "whole name in a library": 'lib = torch.library.Library(ops.name, "DEF")\nlib.impl("relu::f", None, "CUDA")',
    "nested function": 'def a():\n def b():\n  @torch.library.register_fake("relu::f")\n  def c(x): ...',
    "method": 'class A:\n def b(self):\n  torch.library.register_fake("relu::f")',
    "lambda": 'x = lambda: torch.library.register_fake("relu::f")',
    "condition": 'if hasattr(torch.library, "register_fake"):\n torch.library.register_fake("relu::f")',
    "comprehension": '[torch.library.register_fake("relu::f") for _ in ()]',
    "default": 'def f(x=torch.library.register_fake("relu::f")): ...',
    "module alias": 'import torch as th\nth.library.register_fake("relu::f")',
    "submodule alias": 'import torch.library as tl\ntl.register_fake("relu::f")',
    "from torch": 'from torch import library\nlibrary.register_fake("relu::f")',
    "function alias": 'from torch.library import custom_op as op\n@op("relu::f", mutates_args=())\ndef f(x): ...',
    "star import": 'from torch.library import *\ndefine("relu::f", "()")',
    "assigned alias": 'register = torch.library.register_fake\nregister("relu::f")',
    "getattr": 'getattr(torch.library, "register_fake")("relu::f")',
    "partial": 'import functools\nfunctools.partial(torch.library.custom_op, "relu::f")',
    "called partial": 'import functools\nfunctools.partial(torch.library.custom_op, mutates_args=())("relu::f")',
    "fallback import": "try:\n from torch.library import register_fake\nexcept ImportError:\n"
    ' from torch.library import impl_abstract as register_fake\nregister_fake("relu::f")',
    "text after a wide letter": 'é = "日本"; torch.library.register_fake("relu::f")',
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_fixed_name_is_found_wherever_it_is_registered(text):
    assert judged(HEAD + text) == [("B120", '"relu::f"')]


FOLLOWED = {
    "constant": ('NAME = "relu::f"\n', "NAME"),
    "sum": ("", '"relu::" + "f"'),
    "name in a sum": ('NS = "relu::"\n', 'NS + "f"'),
    "f-string": ("", 'f"relu::{f}"'),
    "percent": ("", '"relu::%s" % f'),
    "format": ("", '"relu::{}".format(f)'),
    "other ops": ("", "torch.ops.relu.f.default"),
    "choice": ("", 'add_op_namespace_prefix("f") if x else "relu::f"'),
    "loop": ('for name in ("relu::f", add_op_namespace_prefix("g")):\n ', "name"),
    "unpacked": ('a, b = "relu::f", 1\n', "a"),
    "function": ('def named(x):\n return f"relu::{x}"\n', 'named("f")'),
}


@pytest.mark.parametrize(("before", "name"), FOLLOWED.values(), ids=FOLLOWED.keys())
def test_a_fixed_name_is_followed_to_where_it_is_made(before, name):
    assert judged(f"{HEAD}{before}torch.library.register_fake({name})") == [("B120", name)]


OURS = {
    "prefix": ("", 'add_op_namespace_prefix("f")'),
    "renamed prefix": ("from ._ops import add_op_namespace_prefix as p\n", 'p("f")'),
    "module": ("from . import _ops\n", '_ops.add_op_namespace_prefix("f")'),
    "prefix of an extension": ("from ._ops_moe import add_op_namespace_prefix as p\n", 'p("f")'),
    "everything of an extension": ("from ._ops_moe import *\n", 'add_op_namespace_prefix("f")'),
    "prefix of tvm-ffi": ("from ._ops import torch_add_op_namespace_prefix as p\n", 'p("f")'),
    "namespace": ("", 'f"{ops.name}::f"'),
    "sum": ("", 'ops.name + "::f"'),
    "overload": ("", "ops.f.default"),
    "alias of ops": ("o = ops\n", "o.f.default"),
    "constant": ('NAME = add_op_namespace_prefix("f")\n', "NAME"),
    "op": ('@torch.library.custom_op(add_op_namespace_prefix("f"), mutates_args=())\ndef f(x): ...\n', "f"),
    "loop": ('for name in [add_op_namespace_prefix("f")]:\n ', "name"),
    "function": ("def named(x):\n return add_op_namespace_prefix(x)\n", 'named("f")'),
    "library": ('lib = torch.library.Library(ops.name, "FRAGMENT")\n', "lib"),
    "star import": ("from ._ops import *\n", 'add_op_namespace_prefix("f")'),
    "fallback": (
        """try:\n from ._ops import add_op_namespace_prefix
except ImportError:\n def add_op_namespace_prefix(x): return x\n""",
        'add_op_namespace_prefix("f")',
    ),
}


@pytest.mark.parametrize(("before", "name"), OURS.values(), ids=OURS.keys())
def test_a_name_in_the_namespace_of_the_build_is_no_finding(before, name):
    assert judged(f"{HEAD}{before}torch.library.impl({name}, 'CUDA')") == []


QUIET = {
    "library of the namespace": 'lib = torch.library.Library(ops.name, "DEF")\nlib.define("f(Tensor x) -> Tensor")',
    "another impl": 'thing.impl("relu::f")\nthing.define("relu::f")',
    "method of an op": 'f.register_fake("cuda")',
    "no name": "torch.library.get_ctx()\ntorch.library.fallthrough_kernel()",
    "local function of the name": 'def custom_op(x): ...\ncustom_op("relu::f")',
    "text in a string": "'''torch.library.register_fake(\"relu::f\")'''",
    "starred": "torch.library.register_fake(*names)",
}


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET.keys())
def test_what_registers_nothing_is_no_finding(text):
    assert judged(HEAD + text) == []


def test_another_module_of_the_name_is_not_torch():
    assert judged('from mine import torch\ntorch.library.register_fake("relu::f")') == []


def test_names_that_double_each_other_are_judged_in_no_time():
    lines = [f"a{n} = a{n + 1} + a{n + 1}" for n in range(30)]
    assert judged("\n".join([HEAD, *lines, "torch.library.register_fake(a0)"])) == [("B121", "a0")]


HIDDEN = {
    "parameter": "def register(name):\n torch.library.register_fake(name)",
    "attribute": "torch.library.register_fake(self.name)",
    "unknown name": "torch.library.register_fake(name)",
    "unknown function": 'torch.library.register_fake(make("f"))',
    "circle": "name = name\ntorch.library.register_fake(name)",
    "two names in a circle": "a = b\nb = a\ntorch.library.register_fake(a)",
    "function that calls itself": "def f(x):\n return f(x)\ntorch.library.register_fake(f(1))",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_name_that_cannot_be_told_is_a_note(text):
    assert [code for code, _ in judged(HEAD + text)] == ["B121"]


def test_names_are_followed_into_other_modules_of_the_package():
    text = f"{HEAD}from .names import BAD, GOOD, make\n" + "".join(
        f"torch.library.register_fake({name})\n" for name in ("BAD", "GOOD", 'make("f")')
    )
    names = (
        "from ._ops import add_op_namespace_prefix\n"
        'BAD = "relu::f"\nGOOD = add_op_namespace_prefix("f")\ndef make(x): return add_op_namespace_prefix(x)\n'
    )
    assert judged(text, names=names) == [("B120", "BAD")]


def test_the_remedy_names_the_op():
    python = PythonFile(text=HEAD + FOREIGN["define"], file="a.py", name="relu", package=True)
    (located,) = judge([python])
    assert located.problem.help == (
        """write 'from ._ops import add_op_namespace_prefix', and add_op_namespace_prefix("f")"""
    )


def test_the_remedy_of_a_tvm_ffi_kernel_names_its_own_prefix(tmp_path):
    package = tmp_path / "tvm-ffi-ext" / "relu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"{HEAD}{FOREIGN['define']}\n{FOREIGN['library']}\n", encoding="utf-8")
    remedies = [located.problem.help for located in check(package, "tvm-ffi-ext/relu")]
    assert all("import torch_add_op_namespace_prefix'" in remedy for remedy in remedies)
    assert len(remedies) == 2


BROKEN = {
    "syntax": b"def f(:\n",
    "open bracket": b"x = (1\n",
    "nul": b"x = 1\0\n",
    "not UTF-8": b"x = '\xff'\n",
    "unknown encoding": b"# -*- coding: klingon -*-\n",
    "nested": b"x = " + b"(" * 1000 + b")" * 1000 + b"\n",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_is_no_python_is_a_finding_and_the_others_are_still_read(tmp_path, content):
    (tmp_path / "bad.py").write_bytes(content)
    (tmp_path / "good.py").write_text(HEAD + FOREIGN["define"], encoding="utf-8")
    codes = [located.problem.code for located in check(tmp_path, "torch-ext/relu")]
    assert codes == ["B122", "B120"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), id="another encoding"),
        pytest.param(b"\xef\xbb\xbfx = 1\r\n", id="mark and CRLF"),
        pytest.param(rb"x = '\d'", id="odd escape"),
        pytest.param(b"", id="empty"),
        pytest.param(b"x = 1" + b" + 1" * 3000, id="long sum"),
        pytest.param(b"x = a" + b".b" * 2000 + b"('c')", id="long chain"),
    ],
)
def test_unusual_python_is_read(tmp_path, content):
    (tmp_path / "odd.py").write_bytes(content)
    assert [located.problem.code for located in check(tmp_path, "x")] in ([], ["B122"])


EXPRESSIONS = st.recursive(
    st.sampled_from(
        ['"relu::f"', '"f"', "ops.name", "x", 'add_op_namespace_prefix("f")', "1", "NAME", "torch.ops.a.b"]
    ),
    lambda inner: (
        st.builds("({} + {})".format, inner, inner)
        | st.builds("f({})".format, inner)
        | st.builds("({} if x else {})".format, inner, inner)
        | st.builds("({}).g".format, inner)
        | st.builds("(lambda x: {})".format, inner)
        | st.builds("[{}, *{}]".format, inner, inner)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_any_expression_is_judged_once_and_quoted_where_it_stands(value, name):
    found = judged(f"{HEAD}NAME = {value}\ntorch.library.register_fake({name})\n")
    assert len(found) <= 1
    assert all(text == name.strip("()") or text in name for _, text in found)


@given(EXPRESSIONS)
def test_a_name_that_the_prefix_begins_is_never_a_finding(rest):
    assert judged(f"{HEAD}torch.library.register_fake(add_op_namespace_prefix({rest}))\n") == []
