"""The summary of a build, and its lines while it runs."""

from pathlib import Path

import pytest

from builder import kernel, matrix
from builder.cli import view
from builder.engine.outcome import CellOutcome, Event
from builder.errors import ToolError
from builder.make.build_report import BuildReport
from tests.paths import ROOT

RELU = ROOT / "examples" / "relu"


@pytest.mark.parametrize(
    "reason", ["{} needs a Mac", "needs a Mac", "{}: needs a Mac", "{} needs a Mac\n  help: buy one"]
)
def test_a_skipped_cell_is_named_once_and_its_reason_takes_a_line(reason):
    cell = matrix.select(kernel.load(RELU).config, matrix.rows())[0]
    outcome = CellOutcome(cell=cell, status="skipped", reason=reason.format(cell.variant))
    assert view.line_of(outcome) == f"{cell.variant}: skipped: needs a Mac"


def outcomes(*results):
    """Return the outcomes of cells: of a text one that was skipped, of an error one that failed."""
    cells = matrix.select(kernel.load(RELU).config, matrix.rows())
    return tuple(
        CellOutcome(cell=cell, status="skipped", reason=f"{cell.variant} {found}")
        if isinstance(found, str)
        else CellOutcome(cell=cell, status="failed", reason=found.message, error=found)
        for cell, found in zip(cells, results, strict=False)
    )


def test_skipped_cells_are_a_line_for_each_reason_in_the_summary():
    found = outcomes("needs a Mac", "needs nvcc", "needs a Mac", "needs a Mac")
    assert view.summary(found).splitlines() == [
        "3 cells skipped: needs a Mac",
        f"{found[1].cell.variant}: skipped: needs nvcc",
        "  `builder doctor` says what installs what is missing, `builder matrix --explain` why there is each cell",
        "4 skipped",
    ]


def test_one_compile_error_of_several_cells_is_told_once_with_the_folder_of_their_logs():
    cells = matrix.select(kernel.load(RELU).config, matrix.rows())[:3]
    said = ("a.cpp:1:2: error: no", "a.cpp:1:2: error: no", "b.cpp:3:4: error: other")
    found = [
        CellOutcome(
            cell=cell,
            status="failed",
            log=Path(f"/logs/{cell.variant}.log"),
            error=ToolError(
                f"{cell.variant}: the build failed\n{text}", help=f"the whole log: /logs/{cell.variant}.log"
            ),
        )
        for cell, text in zip(cells, said, strict=True)
    ]
    first, second, third = (cell.variant for cell in cells)
    assert view.summary(found).splitlines() == [
        "error: the build failed",
        f"  2 cells: {first}, {second}",
        said[0],
        "  help: the whole logs: /logs",
        f"error: {third}: the build failed",
        said[2],
        f"  help: the whole log: /logs/{third}.log",
        "3 FAILED",
    ]


def warned(*texts, status="built"):
    cell = matrix.select(kernel.load(RELU).config, matrix.rows())[0]
    return CellOutcome(cell=cell, status=status, log=Path("/logs/a.log"), report=BuildReport(warnings=texts))


def test_a_warning_of_a_compiler_is_shown_once_for_all_cells_and_counted():
    text = "csrc/a.cpp:1:2: warning: #warning slow\n    1 | #warning slow"
    assert view.summary([warned(text), warned(text)]).splitlines() == [*text.splitlines(), "2 built, 1 warning"]


def test_many_warnings_are_cut_with_the_log_of_all():
    shown = view.summary([warned(*(f"a.cpp:{line}: warning: x" for line in range(12)))]).splitlines()
    assert shown[9:] == ["a.cpp:9: warning: x", "2 more warnings: /logs/a.log", "1 built, 12 warnings"]


def test_warnings_of_a_build_of_before_are_not_told_again():
    assert view.summary([warned("a.cpp:1: warning: x", status="hit")]) == "1 unchanged"


def test_a_build_says_nothing_of_a_skipped_cell_while_it_runs(capsys):
    (outcome,) = outcomes("needs a Mac")
    view.Plain().show(Event(variant=outcome.cell.variant, kind="done", outcome=outcome))
    assert capsys.readouterr().err == ""


def test_one_reason_for_what_was_skipped_says_enough():
    assert view.skipped(outcomes("needs a Mac", "needs a Mac")) == ("2 cells skipped: needs a Mac",)


def test_cells_that_failed_for_one_reason_are_told_together_with_all_the_files_that_they_lack():
    first, second = (
        ToolError(f"cannot get 2 of 9 pinned wheels\n  uv: no address\n  --> {one}\n  --> {two}", help="bring them")
        for one, two in (("a.whl", "b.whl"), ("b.whl", "c.whl"))
    )
    found = outcomes(first, ToolError("no room"), second)
    assert view.summary(found).splitlines() == [
        "error: cannot get 2 of 9 pinned wheels",
        f"  2 cells: {found[0].cell.variant}, {found[2].cell.variant}",
        "  uv: no address",
        "  --> a.whl",
        "  --> b.whl",
        "  --> c.whl",
        "  help: bring them",
        "error: no room",
        "3 FAILED",
    ]


def test_what_an_error_says_of_each_file_stays_with_that_file():
    wrong = [ToolError(f"wrong\n  --> {file}\n      pinned {digest}\n  --> both") for file, digest in ("a1", "b2")]
    said = view.summary(outcomes(*wrong)).splitlines()
    assert said == [*f"error: {wrong[0]}".splitlines(), *f"error: {wrong[1]}".splitlines(), "2 FAILED"]
