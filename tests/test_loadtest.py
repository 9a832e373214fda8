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


def test_a_function_that_nothing_defines_is_named_as_the_sources_write_it(tmp_path):
    silu = kernel.load(EXAMPLES / "silu-and-mul")
    cell = next(cell for cell in choose(silu, variants=(), backends=(), sets="release", unbundled=False) if cell.noarch)
    package = tmp_path / "package"
    package.mkdir()
    said = "package/_a.abi3.so: undefined symbol: _Z5twiceRKN2at6TensorE"
    (package / "__init__.py").write_text(f"raise ImportError({said!r})\n")
    with pytest.raises(loadtest.LoadError) as caught:
        loadtest.load(package, ops="ops", cell=cell, python=Path(sys.executable))
    name = "twice(at::Tensor const&)" if shutil.which("c++filt") else "_Z5twiceRKN2at6TensorE"
    assert f"nothing defines '{name}'" in caught.value.message
    assert "File " not in caught.value.message
    assert caught.value.help is not None
    assert "'src'" in caught.value.help
