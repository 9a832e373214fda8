"""What a build shows of a cell in one line."""

import pytest

from builder import kernel, matrix
from builder.cli import view
from builder.engine.outcome import CellOutcome
from tests.paths import ROOT

RELU = ROOT / "examples" / "relu"


@pytest.mark.parametrize("reason", ["{} needs a Mac", "needs a Mac", "{} needs a Mac\n  help: buy one"])
def test_a_skipped_cell_is_named_once_and_its_reason_takes_a_line(reason):
    cell = matrix.select(kernel.load(RELU).config, matrix.rows())[0]
    outcome = CellOutcome(cell=cell, status="skipped", reason=reason.format(cell.variant))
    assert view.line_of(outcome) == f"{cell.variant}: skipped: needs a Mac"
