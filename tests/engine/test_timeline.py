"""The page of a build, from events and outcomes alone."""

import re

import pytest

from builder import kernel, matrix
from builder.build import ninja_log
from builder.build.report import BuildReport
from builder.engine import timeline
from builder.engine.outcome import CellOutcome, Event
from tests.paths import ROOT

RELU = ROOT / "examples" / "relu"
CPU, CUDA, HIT = (f"torch213-cxx11-{compute}-x86_64-linux" for compute in ("cpu", "cu130", "cu132"))
LOG = """# ninja log v7
0\t4000\t123\tCMakeFiles/_k_cpu_1.dir/a.cpp.o\tabc
500\t2500\t123\tCMakeFiles/<b>.o\tabd
2500\t3000\t123\tCMakeFiles/c.o\tabe
9\t10\ttruncated
4000\t4500\t123\tlib.so\tabf
"""


@pytest.fixture
def cells():
    rows = [row for row in matrix.rows() if row.set == "release"]
    return {cell.variant: cell for cell in matrix.select(kernel.load(RELU).config, rows)}


@pytest.fixture
def page(cells, tmp_path, monkeypatch):
    """A build of three cells, whose clock the test moves."""
    now = [100.0]
    monkeypatch.setattr(timeline.time, "monotonic", lambda: now[0])
    recorder = timeline.Recorder()

    def at(seconds, variant, kind, text=""):
        now[0] = 100.0 + seconds
        recorder.show(Event(variant=variant, kind=kind, text=text))

    (tmp_path / "build").mkdir()
    (tmp_path / "build/.ninja_log").write_text(LOG)
    at(0, CPU, "step", "preparing")
    at(1, CPU, "line", "*** Configuring CMake...")
    at(4, CPU, "line", "[1/4] Building CXX object CMakeFiles/<b>.o")
    at(6, CPU, "line", "[4/4] Linking CXX shared module lib.so")
    at(7, CPU, "line", "auditing")
    at(10, CPU, "done")
    outcomes = [
        CellOutcome(
            cell=cells[CPU],
            status="built",
            reason="first <build>",
            seconds=10.0,
            report=BuildReport(files=tuple(ninja_log.read(tmp_path)), peak_memory=300 << 20),
        ),
        CellOutcome(
            cell=cells[HIT],
            status="hit",
            reason="nothing changed",
            report=BuildReport(files=tuple(ninja_log.read(tmp_path))),
        ),
        CellOutcome(cell=cells[CUDA], status="skipped", reason="no nvcc"),
    ]
    return recorder.page(outcomes, kernel="relu").decode()


def test_the_log_of_ninja_is_read_and_a_broken_line_left_out(tmp_path):
    (tmp_path / ".ninja_log").write_text(LOG)
    assert [(file["output"], file["start"], file["end"]) for file in ninja_log.read(tmp_path)] == [
        ("CMakeFiles/_k_cpu_1.dir/a.cpp.o", 0.0, 4.0),
        ("CMakeFiles/<b>.o", 0.5, 2.5),
        ("CMakeFiles/c.o", 2.5, 3.0),
        ("lib.so", 4.0, 4.5),
    ]
    assert ninja_log.read(tmp_path / "nowhere") == []


def test_a_file_that_ninja_logs_under_two_paths_is_read_once(tmp_path):
    lines = "0\t500\t123\tportable/libc.so\tabc\n0\t500\t123\t/tmp/builder/build/portable/libc.so\tabc\n"
    (tmp_path / ".ninja_log").write_text(f"# ninja log v7\n{lines}0\t9\t123\t/tmp/elsewhere/libc.so\tabd\n")
    assert [file["output"] for file in ninja_log.read(tmp_path)] == ["/tmp/elsewhere/libc.so", "portable/libc.so"]


def test_steps_last_until_the_next(page):
    steps = re.findall(r'class="step"[^>]*><title>([^<]*)</title>', page)
    assert steps == ["preparing: 1.0 s", "configuring: 3.0 s", "compiling: 3.0 s", "auditing: 3.0 s"]


def test_files_stand_where_they_ran_and_none_hides_another(page):
    files = re.findall(r'class="file" x="([\d.]+)" width="([\d.]+)" y="(\d+)"[^>]*><title>([^:]*):', page)
    # The first that was told was done after 4 s, and 2.5 s after ninja began: 100 units are a second.
    assert files == [
        ("150.00", "400.00", "24", "a.cpp"),
        ("200.00", "200.00", "38", "CMakeFiles/&lt;b&gt;.o"),
        ("400.00", "50.00", "38", "CMakeFiles/c.o"),
        ("550.00", "50.00", "24", "lib.so"),
    ]


def test_the_slowest_file_is_named_first(page):
    assert re.findall(r"<li>([\d.]+ s) <code>([^<]*)", page)[0] == ("4.0 s", "a.cpp")


def test_what_was_not_built_is_there_with_its_reason_and_no_files(page):
    assert "1 built, 1 from the store, 1 skipped" in page
    assert "<summary>1: no nvcc</summary>" in page
    assert page.count('class="file"') == 4  # a hit has none: its files are of another run
    assert "memory 300 MiB" in page


def test_no_text_becomes_markup(page):
    assert "first &lt;build&gt;" in page
    assert "<b>" not in page
    assert "<script" not in page
