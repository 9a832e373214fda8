"""The timeline of a build, from events and logs of ninja alone."""

import pytest

from builder.engine.outcome import CellOutcome
from builder.make import ninja_log
from builder.make.job import CompileError
from builder.report import timeline
from tests.report.recorded import CELLS, CPU, CUDA, built, done, file, line, step

LOG = """# ninja log v7
0\t4000\t123\tCMakeFiles/_k_cpu_1.dir/a.cpp.o\tabc
500\t2500\t123\tCMakeFiles/<b>.o\tabd
2500\t3000\t123\tCMakeFiles/c.o\tabe
9\t10\ttruncated
4000\t4500\t123\tlib.so\tabf
"""
EVENTS = (
    step(0, CPU, "preparing"),
    line(1, CPU, "*** Configuring CMake..."),
    line(4, CPU, "[1/4] Building CXX object CMakeFiles/<b>.o"),
    line(6, CPU, "[4/4] Linking CXX shared module lib.so"),
    line(7, CPU, "auditing"),
    done(10, CPU),
)


def test_the_log_of_ninja_is_read_and_a_broken_line_left_out(tmp_path):
    (tmp_path / ".ninja_log").write_text(LOG)
    assert [(file["output"], file["start"], file["end"]) for file in ninja_log.read(tmp_path)] == [
        ("CMakeFiles/_k_cpu_1.dir/a.cpp.o", 0.0, 4.0),
        ("CMakeFiles/<b>.o", 0.5, 2.5),
        ("CMakeFiles/c.o", 2.5, 3.0),
        ("lib.so", 4.0, 4.5),
    ]
    assert ninja_log.read(tmp_path / "nowhere") == ()


def test_a_file_that_ninja_logs_under_two_paths_is_read_once(tmp_path):
    lines = "0\t500\t123\tportable/libc.so\tabc\n0\t500\t123\t/tmp/builder/build/portable/libc.so\tabc\n"
    (tmp_path / ".ninja_log").write_text(f"# ninja log v7\n{lines}0\t9\t123\t/tmp/elsewhere/libc.so\tabd\n")
    assert [file["output"] for file in ninja_log.read(tmp_path)] == ["/tmp/elsewhere/libc.so", "portable/libc.so"]


@pytest.fixture
def found(tmp_path):
    (tmp_path / ".ninja_log").write_text(LOG)
    return timeline.of(EVENTS, [built(CPU, *ninja_log.read(tmp_path))])


def shown(bars):
    return [(bar.label, bar.start, bar.end) for bar in bars]


def test_a_step_lasts_until_the_next_and_compiling_begins_with_the_first_file(found):
    # The first file that was told of was done after 4 s, and 2.5 s after ninja began.
    assert shown(found.cells[0].steps) == [
        ("preparing", 0, 1),
        ("configuring", 1, 1.5),
        ("compiling", 1.5, 7),
        ("auditing", 7, 10),
    ]
    assert found.whole == 10


def test_without_a_log_compiling_begins_with_what_ninja_says_first():
    found = timeline.of(EVENTS, [CellOutcome(cell=CELLS[CPU], status="failed")])
    assert shown(found.cells[0].steps)[1:3] == [("configuring", 1, 4), ("compiling", 4, 7)]
    assert found.files == ()


def test_files_stand_where_they_ran_and_none_overlaps_another_in_its_compiler(found):
    assert [shown(files) for files in found.compilers] == [
        [("a.cpp", 1.5, 5.5), ("lib.so", 5.5, 6.0)],
        [("CMakeFiles/<b>.o", 2.0, 4.0), ("CMakeFiles/c.o", 4.0, 4.5)],
    ]


def test_files_of_all_cells_share_the_compilers():
    events = [line(1, CPU, "[1/1] a"), line(3, CUDA, "[1/1] b"), done(3, CPU), done(3, CUDA)]
    found = timeline.of(events, [built(CPU, file("a.o", 0, 1)), built(CUDA, file("b.o", 0, 2))])
    assert [[(bar.cell, bar.label) for bar in files] for files in found.compilers] == [[(CPU, "a.o"), (CUDA, "b.o")]]


def test_the_files_of_a_second_attempt_are_not_put_where_the_first_was():
    events = [
        step(0, CPU, "compiling"),
        line(1, CPU, "[1/2] a"),
        step(5, CPU, "compiling"),
        line(8, CPU, "[1/2] a"),
        done(9, CPU),
    ]
    found = timeline.of(events, [built(CPU, file("a.o", 0.5, 2.5))])
    assert shown(found.files) == [("a.o", 6.0, 8.0)]


def test_files_of_a_cell_that_failed_stand_where_they_ran_also_where_the_failure_came_first():
    error = CompileError("the build failed")
    error.files = (file("CMakeFiles/k.dir/a.cpp.o", 0, 3), file("b.o", 0, 5))
    events = [
        line(2, CPU, "[1/3] Building CXX object CMakeFiles/k.dir/bad.cpp.o"),
        line(2, CPU, "FAILED: CMakeFiles/k.dir/bad.cpp.o"),
        line(4, CPU, "[2/3] Building CXX object CMakeFiles/k.dir/a.cpp.o"),
        line(6.5, CPU, "[3/3] Building CXX object b.o"),  # told late
        done(7, CPU),
    ]
    failed = CellOutcome(cell=CELLS[CPU], status="failed", error=error)
    assert shown(timeline.of(events, [failed]).files) == [("a.cpp", 1, 4), ("b.o", 1, 6)]


def test_the_files_of_a_hit_are_of_another_build():
    hit = CellOutcome(cell=CELLS[CPU], status="hit", report=built(CPU, file("a.o", 0, 1)).report)
    assert timeline.of([line(1, CPU, "[1/1] a")], [hit]).files == ()


def test_a_build_without_events_has_nothing_in_it():
    found = timeline.of([], [built(CPU, file("a.o", 0, 1))])
    assert (found.whole, found.files, found.cells[0].steps) == (0.0, (), ())
