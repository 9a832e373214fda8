"""A cell through Nix is the same file whatever is varied around it; the cells of torch are in `benchmarks/repro.py`."""

import pytest

from builder.repro.variations import NAMES
from tests.given.kernels import PLAIN_CELL
from tests.integration import nix_repro, nix_tools

guarded, plain = nix_tools.guarded, nix_tools.plain

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
]


def test_a_cell_is_the_same_file_under_what_can_be_varied(plain, guarded, tmp_path):
    assert set(nix_repro.NOT_VARIED) < set(NAMES)
    first, second = nix_repro.twice(plain, PLAIN_CELL, tmp_path, elsewhere=guarded)
    assert first.store != second.store
    assert first.sha256 == second.sha256
