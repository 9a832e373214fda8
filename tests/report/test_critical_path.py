"""The critical path of a build."""

from builder.report import timeline
from tests.report.recorded import CPU, CUDA, built, done, file, line, step


def path(events, *outcomes):
    return [(bar.cell, bar.label) for bar in timeline.critical_path(timeline.of(events, outcomes))]


def test_it_is_the_steps_of_a_cell_and_the_files_that_the_last_one_waited_for():
    events = [
        step(0, CPU, "preparing"),
        line(1, CPU, "*** Configuring CMake..."),
        line(3, CPU, "[1/3] short"),
        line(6, CPU, "auditing"),
        done(7, CPU),
    ]
    files = [file("short.o", 0, 1), file("long.o", 0, 3), file("lib.so", 3.01, 4)]
    assert path(events, built(CPU, *files)) == [
        (CPU, "preparing"),
        (CPU, "configuring"),
        (CPU, "long.o"),
        (CPU, "lib.so"),
        (CPU, "auditing"),
    ]


def test_a_file_that_made_a_compiler_free_is_on_it_also_of_another_cell():
    events = [
        step(0, CPU, "preparing"),
        step(0, CUDA, "preparing"),
        line(2, CUDA, "[1/1] other"),
        done(2.5, CUDA),
        line(4, CPU, "[1/2] mine"),
        done(4.5, CPU),
    ]
    found = path(events, built(CPU, file("mine.o", 2, 4)), built(CUDA, file("other.o", 0, 2)))
    assert found == [(CUDA, "preparing"), (CUDA, "other.o"), (CPU, "mine.o")]


def test_where_a_cell_waited_the_cell_that_it_waited_for_is_on_it():
    events = [
        step(0, CUDA, "preparing"),
        step(0, CPU, "preparing"),
        step(1, CPU, "waiting for memory and cores"),
        line(2, CUDA, "auditing"),
        done(5, CUDA),
        step(5.01, CPU, "compiling"),
        done(9, CPU),
    ]
    assert path(events, built(CPU), built(CUDA)) == [(CUDA, "preparing"), (CUDA, "auditing"), (CPU, "starting")]


def test_waiting_for_nobody_that_is_known_is_on_it_itself():
    events = [step(0, CPU, "preparing"), step(1, CPU, "waiting for memory and cores"), step(3, CPU, "compiling")]
    assert path([*events, done(9, CPU)], built(CPU)) == [(CPU, "preparing"), (CPU, "waiting"), (CPU, "starting")]


def test_it_ends_where_times_go_backwards():
    events = [step(0, CPU, "preparing"), step(0, CPU, "waiting for"), step(0, CUDA, "waiting for"), done(0, CPU)]
    assert path(events, built(CPU), built(CUDA))[-1][0] in {CPU, CUDA}
    files = [file(f"{number}.o", 0, 0) for number in range(9)]
    assert path([line(0, CPU, "[1/9] a"), done(0, CPU)], built(CPU, *files))


def test_a_build_without_events_has_none():
    assert path([], built(CPU)) == []
