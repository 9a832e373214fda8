"""Which sources are compiled with the name of the ops: only those that use it in a way of their own."""

import pytest

from builder.config import Backend, Framework
from builder.kernel import load
from builder.render import render
from builder.render.source_scan import uses_ops_name
from tests.paths import ROOT

LINKED = b"""
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { }
STABLE_TORCH_LIBRARY_EXPAND( TORCH_EXTENSION_NAME , ops) { }
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) { }
STABLE_TORCH_LIBRARY_IMPL_EXPAND(
    TORCH_EXTENSION_NAME, CPU, ops) { }
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
OWN = [
    pytest.param(b"const char* name = TEXT(TORCH_EXTENSION_NAME);", id="a string"),
    pytest.param(b"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { }", id="pybind11"),
    pytest.param(b"REGISTER(TORCH_EXTENSION_NAME)", id="an own macro"),
    pytest.param(b"#ifdef TORCH_EXTENSION_NAME", id="a condition"),
    pytest.param(b"#  define TORCH_LIBRARY_EXPAND(NAME, M) TORCH_LIBRARY(NAME, M)\n" + LINKED, id="own registration"),
]


HEADER = [pytest.param({"a.cpp": LINKED, "b.h": case.values[0]}, None, id=f"a header: {case.id}") for case in OWN]
SOURCE = [
    pytest.param({"a.cpp": LINKED, "b.cpp": LINKED + case.values[0], "c.cu": b"int x;"}, ("b.cpp",), id=case.id)
    for case in OWN
]


@pytest.mark.parametrize(
    ("files", "named"),
    [pytest.param({"a.cpp": LINKED, "b.cu": b"int x;"}, (), id="the macros of the header alone"), *SOURCE, *HEADER],
)
def test_only_sources_with_a_use_of_their_own_are_compiled_with_the_name_and_a_header_may_be_in_any(files, named):
    assert uses_ops_name(list(files), files, framework=Framework.TORCH) == named


def test_for_tvm_ffi_each_source_that_has_the_name_is_compiled_with_it():
    texts = {"a.cpp": b"TVM_FFI_EXTENSION_NAME", "b.cpp": b"TORCH_EXTENSION_NAME"}
    assert uses_ops_name(list(texts), texts, framework=Framework.TVM_FFI) == ("a.cpp",)


@pytest.mark.parametrize("backend", ["cpu", "cuda", "rocm", "xpu"])
def test_no_rendered_file_but_the_calls_of_the_extension_has_the_name(backend):
    kernel = load(ROOT / "examples/relu")
    one, two = (render(kernel, Backend(backend), unique_id=name).files for name in ("one", "two"))
    assert {path for path in one if one[path] != two[path]} <= {
        "CMakeLists.txt", "metadata.json.in", "torch-ext/relu/_ops.py", "torch-ext/relu/metadata.json",
    }  # fmt: skip
    lists = one["CMakeLists.txt"].decode()
    assert (
        lists.replace(f"  OPS _relu_{backend}_one\n", f"  OPS _relu_{backend}_two\n") == two["CMakeLists.txt"].decode()
    )


def test_a_use_of_its_own_is_rendered_for_its_source_alone(tmp_path):
    (tmp_path / "torch-ext/own").mkdir(parents=True)
    (tmp_path / "torch-ext/own/__init__.py").touch()
    (tmp_path / "a.cpp").write_bytes(LINKED)
    (tmp_path / "b.cpp").write_bytes(b"const char* name = TEXT(TORCH_EXTENSION_NAME);")
    (tmp_path / "build.toml").write_text(
        '[general]\nname = "own"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cpu", "rocm"]\n[torch]\n'
        'src = ["a.cpp", "b.cpp"]\n[kernel.own]\nbackend = "cpu"\ndepends = ["torch"]\nsrc = ["c.cpp"]\n'
        '[kernel.rocm]\nbackend = "rocm"\ndepends = ["torch"]\nsrc = ["c.cpp"]\n',
        encoding="utf-8",
    )
    (tmp_path / "c.cpp").touch()
    kernel = load(tmp_path)
    assert "  NAME_IN\n    b.cpp\n" in render(kernel, Backend.CPU)["CMakeLists.txt"]
    assert "  NAME_EVERYWHERE\n" in render(kernel, Backend.ROCM)["CMakeLists.txt"]
