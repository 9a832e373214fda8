"""What a build shows of its cells."""

import pytest

from builder import kernel, matrix
from builder.cli import view
from builder.engine.outcome import CellOutcome, Event
from tests.paths import ROOT

RELU = ROOT / "examples" / "relu"


@pytest.mark.parametrize(
    "reason", ["{} needs a Mac", "needs a Mac", "{}: needs a Mac", "{} needs a Mac\n  help: buy one"]
)
def test_a_skipped_cell_is_named_once_and_its_reason_takes_a_line(reason):
    cell = matrix.select(kernel.load(RELU).config, matrix.rows())[0]
    outcome = CellOutcome(cell=cell, status="skipped", reason=reason.format(cell.variant))
    assert view.line_of(outcome) == f"{cell.variant}: skipped: needs a Mac"


def outcomes(*reasons):
    cells = matrix.select(kernel.load(RELU).config, matrix.rows())
    return tuple(
        CellOutcome(cell=cell, status="skipped", reason=f"{cell.variant} {reason}")
        for cell, reason in zip(cells, reasons, strict=False)
    )


def test_skipped_cells_are_a_line_for_each_reason_in_the_summary():
    found = outcomes("needs a Mac", "needs nvcc", "needs a Mac", "needs a Mac")
    assert view.summary(found).splitlines() == [
        "3 cells skipped: needs a Mac",
        f"{found[1].cell.variant}: skipped: needs nvcc",
        "  `builder doctor` says what installs what is missing, `builder matrix --explain` why there is each cell",
        "4 skipped",
    ]


def test_a_build_says_nothing_of_a_skipped_cell_while_it_runs(capsys):
    (outcome,) = outcomes("needs a Mac")
    view.Plain().show(Event(variant=outcome.cell.variant, kind="done", outcome=outcome))
    assert capsys.readouterr().err == ""


def test_one_reason_for_what_was_skipped_says_enough():
    assert view.skipped(outcomes("needs a Mac", "needs a Mac")) == ("2 cells skipped: needs a Mac",)
