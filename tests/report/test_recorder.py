"""The recorder of a build: the memory of its processes, as Linux tells it."""

import itertools
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from builder.report import recorder, timeline
from builder.report.page import memory_curve
from builder.report.recorder import Recorder
from tests.given.processes import until
from tests.report.recorded import CPU, built, done, page, page_of, step

PAGE = os.sysconf("SC_PAGE_SIZE")


def process(proc, pid, parent, pages, name="cc1plus"):
    (proc / str(pid)).mkdir(parents=True)
    fields = [f"{pid} ({name}) S {parent}", *["0"] * 19, str(pages), "0"]
    (proc / str(pid) / "stat").write_text(" ".join(fields))


def test_all_that_a_process_has_started_counts_and_nothing_else(tmp_path):
    process(tmp_path, 10, 1, 1000)
    process(tmp_path, 11, 10, 3)
    process(tmp_path, 12, 11, 4, name="a) S 1 (b")
    process(tmp_path, 13, 1, 500)
    (tmp_path / "14").mkdir()
    (tmp_path / "meminfo").touch()
    assert recorder.resident(10, tmp_path) == 7 * PAGE
    assert recorder.resident(99, tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what processes take")
def test_a_process_that_takes_memory_is_seen():
    program = "x = bytearray(64 << 20)\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert recorder.look()() >= 64 << 20
        child.communicate(b"\n")


def test_it_looks_at_once_and_until_the_end():
    found = Recorder(lambda: 5)
    with found.measuring():
        until(lambda: found.memory, seconds=10)
    assert found.memory[0][1] == 5


def test_a_short_build_is_looked_at_once_too():
    found = Recorder(lambda: 5)
    with found.measuring():
        pass
    assert [size for _, size in found.memory] == [5]


def test_a_long_build_is_looked_at_ever_less_often_and_no_sample_is_dropped(monkeypatch):
    clock = SimpleNamespace(now=0.0, pauses=[])

    def wait(pause):
        clock.pauses.append(pause)
        clock.now += pause
        return clock.now >= 24 * 3600

    monkeypatch.setattr(recorder.time, "monotonic", lambda: clock.now)
    sizes = itertools.count(1)
    found = Recorder(lambda: next(sizes))
    monkeypatch.setattr(found, "_ended", Mock(wait=wait))
    with found.measuring():
        pass
    assert clock.pauses[0] == 0.25
    assert sorted(clock.pauses) == clock.pauses
    assert [size for _, size in found.memory] == list(range(1, len(clock.pauses) + 1))
    assert len(found.memory) < 8000


def test_what_was_seen_stays_where_it_cannot_look_any_more(monkeypatch):
    monkeypatch.setattr(recorder, "_SHORTEST", 0.0)
    look = Mock(side_effect=[7, OSError])
    found = Recorder(look)
    with found.measuring():
        until(lambda: look.call_count > 1, seconds=10)
    assert [size for _, size in found.memory] == [7]


def test_the_curve_has_the_most_of_each_column_and_lasts_until_the_end():
    points, words = memory_curve([(0.0, 100), (0.001, 300), (5.0, 600)], 10.0)
    assert points == "0,100 0,50.0 50,0.0 100,0.0 100,100"
    assert words == "600 B at most, at 5.0 s"
    assert memory_curve([], 10) is None
    assert memory_curve([(0.0, 0)], 10) is None
    assert len(memory_curve([(at / 100, 1 + at) for at in range(100_000)], 1000.0)[0].split()) < 410


def test_the_page_draws_it():
    found = Recorder(lambda: 3 << 20)
    with found.measuring():
        for _, event in (step(0, CPU, "preparing"), done(0, CPU)):
            found.show(event)
    text = page_of(timeline.of(found.events, [built(CPU)], found.memory))
    assert re.search(r'aria-label="memory over time: 3.0 MiB at most, at [\d.]+ s"', text)
    assert "was not measured" not in text


def test_a_build_in_which_nothing_ran_was_measured_all_the_same(monkeypatch):
    text = page(monkeypatch, [step(0, CPU, "preparing"), done(9, CPU)], [built(CPU)], look=lambda: 0)
    assert "was not measured" not in text
    assert "Memory of all processes" not in text


def test_the_page_says_where_it_was_not_measured(monkeypatch):
    text = page(monkeypatch, [step(0, CPU, "preparing"), done(9, CPU)], [built(CPU)])
    assert "Memory over time was not measured" in text
    assert "memory of its largest process 300.0 MiB" in text
