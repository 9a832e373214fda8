"""The lines of a terminal about the cells that are being built."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from builder.cli import view
from builder.cli.view import RunningCell, lines
from builder.engine.outcome import Event
from builder.wording import duration
from tests.paths import ROOT

CUDA, CPU = "torch213-cxx11-cu130-x86_64-linux", "torch213-cxx11-cpu-x86_64-linux"
OBJECT = "Building CUDA object CMakeFiles/_relu_cuda.dir/relu_cuda/relu.cu.o"
INDEX = "https://wheels.example/whl/cu130"


def step(text, *, expected=None, variant=CUDA):
    return Event(variant=variant, kind="step", text=text, expected=expected)


def ninja(done, of, what=OBJECT):
    return Event(variant=CUDA, kind="line", text=f"[{done}/{of}] {what}")


def cell(*events, label=CUDA, began=0.0):
    found = RunningCell(label=label, began=began)
    for at, event in enumerate(events):
        found = found.after(event, now=float(at))
    return found


def test_a_cell_that_compiles_shows_its_count_of_files_and_what_the_last_build_took():
    shown = lines([cell(step("compiling", expected=190), ninja(7, 19))], now=42.0, width=120)
    assert shown == (f"{CUDA}  compiling, 7 of 19 files  42 s of about 3 min 10 s  relu.cu",)


def test_what_takes_longer_than_the_last_build_is_promised_nothing():
    (shown,) = lines([cell(step("compiling", expected=40), ninja(7, 19))], now=42.0, width=120)
    assert shown == f"{CUDA}  compiling, 7 of 19 files  42 s  relu.cu"


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param([step("preparing")], "preparing", id="preparing"),
        pytest.param([step("installing 25 pinned wheels")], "installing 25 pinned wheels", id="installing"),
        pytest.param([step("waiting for memory and cores")], "waiting for memory and cores", id="waiting"),
        pytest.param([step("compiling")], "starting", id="compiling, before it is configured"),
        pytest.param(
            [step("compiling"), Event(variant=CUDA, kind="line", text="*** Configuring CMake...")],
            "configuring",
            id="configuring",
        ),
        pytest.param(
            [ninja(19, 19), Event(variant=CUDA, kind="line", text="auditing")], "auditing", id="after the last file"
        ),
        pytest.param(
            [step("preparing"), Event(variant=CUDA, kind="note", text="first build of this cell")],
            "first build of this cell",
            id="a note",
        ),
        pytest.param(
            [step("preparing"), Event(variant=CUDA, kind="line", text="-- Detecting CXX compiler")],
            "preparing",
            id="what cmake says is no step",
        ),
    ],
)
def test_a_cell_says_what_it_does(events, text):
    assert cell(*events).text == text


def test_a_step_that_makes_no_file_shows_none():
    assert cell(ninja(17, 19, "Making libraries to link to")).last == ""
    assert cell(ninja(18, 19, "Linking CXX shared module _relu_cuda.so")).last == "_relu_cuda.so"


def test_cells_that_wait_are_one_line_below_those_that_work():
    cells = [cell(step("waiting for memory and cores"), label=f"cell-{number}") for number in range(3)]
    shown = lines([*cells, cell(ninja(1, 2), label=CPU)], now=5.0, width=120)
    assert shown == (
        f"{CPU}  compiling, 1 of 2 files       5 s  relu.cu",
        f"{'3 cells':<{len(CPU)}}  waiting for memory and cores  5 s",
    )


def test_a_cell_that_waits_alone_is_named():
    (shown,) = lines([cell(step("waiting for memory and cores"))], now=5.0, width=120)
    assert shown.startswith(f"{CUDA}  waiting for memory and cores")


@pytest.mark.parametrize("width", range(40, 201, 8))
def test_no_line_is_longer_than_the_terminal_and_each_cell_has_one(width):
    cells = [
        cell(step("compiling", expected=4000), ninja(107, 1190)),
        cell(step(f"installing 1 pinned wheels from {INDEX}"), label=f"a-kernel-with-a-name:{CPU}"),
    ]
    shown = lines(cells, now=42.0, width=width)
    assert len(shown) == 2
    assert max(map(len, shown)) <= width
    assert "107/1190" in shown[0] or "107 of 1190" in shown[0]
    assert "42 s" in shown[0]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (40, "torch213-cxx11-cu130-x86_...  7/19  42 s"),
        (60, f"{CUDA}  7/19  42 s"),
        (80, f"{CUDA}  7/19  42 s of about 3 min 10 s"),
        (90, f"{CUDA}  compiling, 7 of 19 files  42 s of about 3 min 10 s"),
    ],
)
def test_a_narrow_terminal_keeps_the_cell_the_count_and_the_time(width, expected):
    (shown,) = lines([cell(step("compiling", expected=190), ninja(7, 19))], now=42.0, width=width)
    assert shown == expected


def test_a_build_of_several_cells_says_how_many_are_done_and_since_when():
    assert view.overall(3, 6, 130.0) == ("3 of 6 cells  2 min 10 s",)
    assert view.overall(0, 1, 130.0) == ()


def test_nothing_is_built_and_nothing_is_shown():
    assert lines([], now=0.0, width=80) == ()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_a_time_is_said_in_its_unit(seconds, text):
    assert duration(seconds) == text


def test_what_a_compiler_names_a_file_controls_no_terminal():
    shown = cell(ninja(1, 2, "Building CXX object a/\x1b[31mevil.cpp.o"))
    assert shown.last.isprintable()
    assert cell(step("installing \x1b]0;pwned\x07 wheels")).text.isprintable()


def test_where_lines_cannot_be_redrawn_a_build_is_quiet_and_says_now_and_then_how_far_it_is(monkeypatch, capsys):
    shown = view.Plain()
    for event in (step("compiling"), *(ninja(number, 19) for number in range(1, 10))):
        shown.show(event)
    assert capsys.readouterr().err.splitlines() == [f"{CUDA}: compiling"]
    monkeypatch.setattr(view, "_QUIET", -1.0)
    shown.show(ninja(10, 19))
    assert capsys.readouterr().err.splitlines() == [f"{CUDA}: [10/19] {OBJECT}"]


SCRIPT = f"""
import os, time
from builder.cli import view
from builder.engine.outcome import Event
with view.showing(environ=os.environ, quiet=False, cells=2) as show:
    show(Event(variant={CUDA!r}, kind="step", text="compiling", expected=190))
    show(Event(variant={CUDA!r}, kind="line", text="[7/19] {OBJECT}"))
    time.sleep(0.6)
"""


def on_a_terminal(*, columns, **environ):
    """Return what a terminal of some width is sent."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    base = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "GITHUB_ACTIONS"}}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**base, "PYTHONPATH": str(ROOT), **environ},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # all who could write have ended
            break
        if not part:
            break
        said += part
    os.close(leader)
    assert process.wait() == 0
    return said.decode()


def test_a_real_terminal_has_a_line_that_fits_and_is_left_as_it_was():
    said = on_a_terminal(columns=40, TERM="xterm-256color", NO_COLOR="1")
    assert re.search(r"torch213-cxx11-cu130-x86_6\.\.\.  7/19  \d s", said)
    assert "0 of 2 cells  0 s" in said
    assert "\x1b[?25h" in said.rpartition("\x1b[?25l")[2]  # the cursor is back
    assert not re.search(r"\x1b\[[0-9;]*[1-9][0-9]*m", said)  # no colour


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_is_sent_lines(term):
    assert "\x1b" not in on_a_terminal(columns=80, TERM=term)
