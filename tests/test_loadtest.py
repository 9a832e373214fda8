"""The load test beyond what builds of real kernels show of it."""

import shutil
import sys
from pathlib import Path

import pytest

from builder import kernel, loadtest
from builder.cli.build import choose

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("kept", [True, False])
def test_bytecode_is_kept_only_where_it_may_be(tmp_path, kept):
    silu = kernel.load(EXAMPLES / "silu-and-mul")
    cell = next(cell for cell in choose(silu, variants=(), backends=(), sets="release", unbundled=False) if cell.noarch)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    loaded = loadtest.load(package, ops="ops", cell=cell, python=Path(sys.executable), bytecode=kept)
    assert loaded.ops == {"ops": ("import",)}
    assert (package / "__pycache__").exists() == kept


def refused(tmp_path, symbol):
    """Return the error of a package whose library lacks a symbol."""
    silu = kernel.load(EXAMPLES / "silu-and-mul")
    cell = next(cell for cell in choose(silu, variants=(), backends=(), sets="release", unbundled=False) if cell.noarch)
    package = tmp_path / "package"
    package.mkdir()
    said = f"package/_a.so: undefined symbol: {symbol}"
    (package / "__init__.py").write_text(f"raise ImportError({said!r})\n")
    with pytest.raises(loadtest.LoadError) as caught:
        loadtest.load(package, ops="ops", cell=cell, python=Path(sys.executable))
    return caught.value


def test_a_function_that_nothing_defines_is_named_as_the_sources_write_it(tmp_path):
    error = refused(tmp_path, "_Z5twiceRKN2at6TensorE")
    name = "twice(at::Tensor const&)" if shutil.which("c++filt") else "_Z5twiceRKN2at6TensorE"
    assert f"undefined symbol '{name}': nothing defines it" in error.message
    assert "File " not in error.message
    assert error.help is not None
    assert "'src'" in error.help


@pytest.mark.parametrize("symbol", ["torch_dtype_float4_e2m1fn_x2", "_ZN3c105ErrorC1EPKc", "_ZTIN3c105ErrorE"])
def test_what_a_torch_lacks_is_not_asked_of_the_sources(tmp_path, symbol):
    error = refused(tmp_path, symbol)
    assert "the torch that it was loaded with has no such thing" in error.message
    assert error.help is not None
    assert "torch.stable-abi" in error.help
