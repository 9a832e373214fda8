"""A recorded build without a build: events at times that a test chooses, and logs of ninja."""

import functools

from builder.engine.outcome import CellOutcome, Event
from builder.make.build_report import BuildReport
from builder.report import page as build_page
from builder.report import recorder, timeline
from builder.report.recorder import Recorder
from tests.given.cells import cell_in
from tests.paths import ROOT

CPU, CUDA, HIT = (f"torch213-cxx11-{compute}-x86_64-linux" for compute in ("cpu", "cu130", "cu132"))


CELLS = {variant: cell_in(ROOT / "examples/relu", variant=variant) for variant in (CPU, CUDA, HIT)}


def _event(kind, at, variant, text=""):
    return at, Event(variant=variant, kind=kind, text=text)


step, line, done = (functools.partial(_event, kind) for kind in ("step", "line", "done"))


def file(output, start, end, **more):
    return {"output": output, "start": start, "end": end, **more}


def built(variant, *files, **more):
    report = BuildReport(files=files, peak_memory=300 << 20)
    return CellOutcome(cell=CELLS[variant], status="built", report=report, **more)


def page_of(found, *, kernel="relu", earlier=lambda _: {}):
    """Return the page of a timeline."""
    return build_page.of(found, kernel=kernel, trace="report.trace.json", earlier=earlier).decode()


def page(monkeypatch, events, outcomes, *, look=None, **more):
    """Return the page of a build whose clock the test moves."""
    now = [100.0]
    monkeypatch.setattr(recorder.time, "monotonic", lambda: now[0])
    found = Recorder(look)
    with found.measuring():
        for at, event in events:
            now[0] = 100.0 + at
            found.show(event)
    return page_of(timeline.of(found.events, outcomes, found.memory), **more)
