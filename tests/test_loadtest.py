"""The load test beyond what builds of real kernels show of it."""

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
