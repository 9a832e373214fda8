"""The memory that the processes of a build take."""

import os
import re
import subprocess
import sys
import threading

import pytest

from builder.report import drawing, memory
from builder.report.memory import MemorySample
from builder.report.page import Recorder
from tests.report.recorded import CPU, built, done, page, step

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
    assert memory.resident(10, tmp_path) == 7 * PAGE
    assert memory.resident(99, tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what processes take")
def test_a_process_that_takes_memory_is_seen():
    program = "x = bytearray(64 << 20)\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert memory.look()() >= 64 << 20
        child.communicate(b"\n")


def test_it_looks_at_once_and_until_the_end():
    looked = threading.Event()

    def look():
        looked.set()
        return 5

    sampler = memory.Sampler(look, lambda: 2.0)
    with sampler.running():
        assert looked.wait(10)
    assert sampler.samples[0] == MemorySample(at=2.0, size=5)


def test_a_long_build_has_no_more_samples_and_no_peak_is_lost(monkeypatch):
    monkeypatch.setattr(memory, "_TURN", 0.0)
    monkeypatch.setattr(memory, "_MOST", 10)
    sizes, enough = iter([9, *range(1, 9)]), threading.Event()

    def look():
        found = next(sizes, None)
        if found is None:
            enough.set()
        return found or 0

    sampler = memory.Sampler(look, lambda: 0.0)
    with sampler.running():
        assert enough.wait(10)
    assert len(sampler.samples) < 10
    assert max(sample.size for sample in sampler.samples) == 9


def test_what_was_seen_stays_where_it_cannot_look_any_more():
    sizes = iter([7])

    def look():
        try:
            return next(sizes)
        except StopIteration:
            raise OSError from None

    sampler = memory.Sampler(look, lambda: 0.0)
    with sampler.running():
        pass
    assert sampler.samples == (MemorySample(at=0.0, size=7),)


def test_a_column_has_the_most_of_its_time_and_lasts_until_the_next():
    samples = [MemorySample(at=0, size=100), MemorySample(at=0.001, size=300), MemorySample(at=5, size=600)]
    found = drawing.memory(samples, 10)
    assert found.words == "600 B at most, at 5.0 s"
    assert [(each.x, each.width, each.y, each.height) for each in found.columns] == [
        ("0.000%", "50.000%", "50.000%", "50.000%"),
        ("50.000%", "50.000%", "0.000%", "100.000%"),
    ]
    assert [each.title for each in found.columns] == ["300 B at 0.0 s", "600 B at 5.0 s"]
    assert drawing.memory([], 10) is None
    assert drawing.memory([MemorySample(at=0, size=0)], 10) is None


def test_the_page_draws_it():
    recorder = Recorder(lambda: 3 << 20)
    with recorder.measuring():
        for _, event in (step(0, CPU, "preparing"), done(0, CPU)):
            recorder.show(event)
    text = recorder.page([built(CPU)], kernel="relu").decode()
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
