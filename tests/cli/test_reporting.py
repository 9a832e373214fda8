"""The report of a build is written at its end, and when it is stopped."""

import json
import signal

import pytest

from builder import kernel
from builder.cli import building
from builder.engine import local
from builder.engine.outcome import CellOutcome, Event
from builder.make.build_report import BuildReport
from builder.plan.ask import Ask, KernelBuild
from builder.store import Store
from builder.store.locks import StoppedError
from tests.paths import ROOT
from tests.report.recorded import CELLS, CPU, CUDA, HIT, file

STOPPED = "This build was stopped before its end."


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Build three cells by what the test gives for the local engine."""
    before = signal.getsignal(signal.SIGTERM)

    def build_(engine, report="report.html"):
        monkeypatch.setattr(local, "build", lambda _builds, listen, **_: engine(listen))
        target = None if report is None else tmp_path / report
        cells = tuple(CELLS[name] for name in (CPU, HIT, CUDA))
        ask = Ask(store=Store(tmp_path / "store"), environ={})
        relu = KernelBuild(kernel=kernel.load(ROOT / "examples/relu"), cells=cells, ask=ask)
        return building.run((relu,), quiet=True, report=target)

    yield build_
    signal.signal(signal.SIGTERM, before)


def ends(variant, **more):
    return Event(variant=variant, kind="done", outcome=CellOutcome(cell=CELLS[variant], **more))


def interrupted(listen):
    """Build one cell, stop another in the middle, and begin the third never."""
    for variant in (HIT, CPU):
        listen(Event(variant=variant, kind="step", text="compiling"))
    made = (file("CMakeFiles/_k.dir/csrc/a.cpp.o", 0, 0.01),)
    listen(Event(variant=CPU, kind="line", text="[1/9] Building CXX object CMakeFiles/_k.dir/csrc/a.cpp.o"))
    listen(ends(HIT, status="built", report=BuildReport(files=())))
    error = StoppedError(f"{CPU}: stopped before it was finished")
    error.files = made
    listen(ends(CPU, status="stopped", reason=error.message, error=error))
    raise KeyboardInterrupt


def test_a_build_that_is_stopped_leaves_the_report_of_what_it_did(build, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(interrupted)
    page = (tmp_path / "report.html").read_text()
    assert f'<p role="status"><strong>{STOPPED}</strong> The page has what was done until then; not begun: ' in page
    assert f"not begun: <code>{CUDA}</code>.</p>" in page
    assert "1 built, 0 from the store, 0 skipped, 1 stopped." in page
    assert page.index(f"<h3>{CPU}</h3>") < page.index(f"<h3>{HIT}</h3>")
    assert ">a.cpp<" in page
    assert "<code>report.trace.json</code>" in page
    trace = json.loads((tmp_path / "report.trace.json").read_text())
    assert "csrc/a.cpp" in [each["name"] for each in trace["traceEvents"]]


def test_the_report_of_a_build_that_ends_does_not_say_that_it_was_stopped(build, tmp_path):
    def engine(listen):
        listen(ends(CPU, status="built"))
        return (CellOutcome(cell=CELLS[CPU], status="built"),)

    assert [outcome.status for outcome in build(engine)] == ["built"]
    page = (tmp_path / "report.html").read_text()
    assert "1 built" in page
    assert STOPPED not in page
    assert "not begun" not in page


def test_a_build_that_is_stopped_ends_as_one_although_its_report_cannot_be_written(build, tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(KeyboardInterrupt):
        build(interrupted, "file/report.html")
    assert "cannot write the report" in capsys.readouterr().err


def test_a_build_without_a_report_that_is_stopped_writes_nothing(build, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(interrupted, None)
    assert not [*tmp_path.glob("*.html"), *tmp_path.glob("*.json")]
