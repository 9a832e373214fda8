"""Builds of several kernels: whose each event is, and which begins first."""

import pytest

from builder import kernel as kernels
from builder import matrix
from builder.cli import view
from builder.engine.outcome import CellOutcome, Event, for_kernel
from builder.plan import load_test_needs
from tests import hub_folder
from tests.cli.folders import write
from tests.given.cells import cell_in
from tests.report.recorded import page


def depending(root, name, *others):
    return kernels.load(hub_folder.depend(write(root, name), *(f"someone/{other}" for other in others)))


@pytest.fixture
def cell(tmp_path):
    return cell_in(write(tmp_path, "one"), sets=("release",), system="x86_64-linux")


def test_an_event_and_its_outcome_say_whose_they_are(cell):
    heard = []
    tell = for_kernel(heard.append, "one")
    tell(Event(variant=cell.variant, kind="step", text="preparing"))
    outcome = CellOutcome(cell=cell, status="hit", kernel="one")
    tell(Event(variant=cell.variant, kind="done", outcome=outcome))
    assert [event.variant for event in heard] == ["one:torch-cpu"] * 2
    assert heard[1].outcome.label == "one:torch-cpu"
    assert "kernel" not in outcome.to_json()


def test_the_summary_counts_for_each_kernel(cell):
    outcomes = tuple(
        CellOutcome(cell=cell, status=status, kernel=kernel, reason="why")
        for kernel, status in (("one", "hit"), ("one", "skipped"), ("two", "hit"))
    )
    assert view.summary(outcomes).splitlines() == [
        "one:torch-cpu: skipped: why",
        "2 unchanged, 1 skipped",
        "kernel  unchanged  skipped",
        "one     1          1",
        "two     1          -",
    ]


def test_the_page_of_a_build_tells_kernels_apart(monkeypatch, cell):
    heard = []
    outcomes = []
    for name in ("one", "two"):
        for_kernel(heard.append, name)(Event(variant=cell.variant, kind="step", text="preparing"))
        outcomes.append(CellOutcome(cell=cell, status="hit", kernel=name))
    text = page(monkeypatch, [(0.0, event) for event in heard], outcomes, kernel="2 kernels")
    assert "2 kernels" in text
    assert "one:torch-cpu" in text
    assert "two:torch-cpu" in text


def test_kernels_that_others_depend_on_begin_first(tmp_path):
    found = [depending(tmp_path, "aa", "bb"), depending(tmp_path, "bb", "cc", "elsewhere"), depending(tmp_path, "cc")]
    assert load_test_needs.in_order(found) == (2, 1, 0)


def test_kernels_in_a_circle_have_some_order(tmp_path):
    found = [depending(tmp_path, "aa", "bb"), depending(tmp_path, "bb", "aa"), depending(tmp_path, "cc", "cc")]
    assert sorted(load_test_needs.in_order(found)) == [0, 1, 2]


def test_a_cell_waits_for_the_wheels_that_its_load_test_looks_for(tmp_path, cell):
    assert load_test_needs.names(depending(tmp_path, "aa", "b-c"), cell) == (("b_c", "torch-cpu"),)
    assert load_test_needs.names(depending(tmp_path, "dd"), cell) == ()
    assert matrix.is_noarch(kernels.load(tmp_path / "aa").config, cell.backend)
