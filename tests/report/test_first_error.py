"""The first error on the page of a build, from events and outcomes alone."""

import pytest

from builder.engine.outcome import CellOutcome, Event
from builder.errors import AuditError
from builder.make.job import CompileError
from builder.report import timeline
from builder.report.page import first_error
from tests.report.recorded import CELLS, CPU, CUDA, done, line, page_of

SAID = """/tmp/builder/src/csrc/a.h:7:2: error: <b>\x1b[31mno
    7 | #error <b>
/tmp/builder/src/csrc/a.h:9:1: error: second"""


def failed(cell, said=SAID):
    error = CompileError(f"{cell.variant}: the build failed\n{said}", help="the whole log: /logs/<relu>.log")
    return CellOutcome(cell=cell, status="failed", reason=error.message, error=error)


def test_it_is_that_of_the_cell_that_ended_first():
    events = [Event(variant=CUDA, kind="done"), Event(variant=CPU, kind="done")]
    found = first_error(events, [failed(CELLS[CPU]), failed(CELLS[CUDA])])
    assert (found.label, found.others) == (CUDA, 1)
    assert found.headline == "the build failed"
    assert first_error(events, [CellOutcome(cell=CELLS[CPU], status="built")]) is None


def test_it_names_the_file_of_the_error_and_what_was_compiled():
    failing = "FAILED: [code=1] CMakeFiles/_relu_cpu.dir/csrc/a.cpp.o"
    events = [
        line(0, CUDA, "FAILED: CMakeFiles/k.dir/b.cu.o")[1],
        line(0, CPU, failing)[1],
        Event(variant=CPU, kind="done"),
    ]
    found = first_error(events, [failed(CELLS[CPU])])
    assert (found.place, found.source) == ("csrc/a.h, line 7", "csrc/a.cpp")
    assert found.lines[1] == "    7 | #error <b>"


def test_what_was_compiled_is_not_said_twice():
    told = line(0, CPU, "FAILED: CMakeFiles/_relu_cpu.dir/csrc/a.cpp.o")[1]
    found = first_error([told], [failed(CELLS[CPU], "/tmp/builder/src/csrc/a.cpp:3:1: error: no")])
    assert (found.place, found.source) == ("csrc/a.cpp, line 3", "")


@pytest.mark.parametrize(
    ("said", "place"),
    [
        pytest.param("/tmp/builder/src/csrc/k.cu(12): error: expected a ;", "csrc/k.cu, line 12", id="nvcc"),
        pytest.param("CMake Error at cmake/find.cmake:3 (message):", "cmake/find.cmake, line 3", id="CMake"),
        pytest.param("/s/scratch/1/src/a.cpp:3: fatal error: x.h: none", "a.cpp, line 3", id="folder of a store"),
        pytest.param("/usr/include/x.h:4:1: error: no", "/usr/include/x.h, line 4", id="not of the project"),
        pytest.param(
            "csrc/a.cpp:12:5:   required from here\nx.h:4:1: error: no",
            "csrc/a.cpp, line 12",
            id="template",
        ),
        pytest.param("collect2: error: ld returned 1 exit status", "", id="linker"),
        pytest.param("nvcc fatal   : Unsupported gpu architecture", "", id="no file"),
    ],
)
def test_the_place_is_read_from_what_each_tool_says(said, place):
    assert first_error([], [failed(CELLS[CPU], f"note: before\n{said}")]).place == place


def test_the_page_has_it_before_all_else_and_as_text():
    events = [line(0, CPU, "FAILED: CMakeFiles/k.dir/<i>.cpp.o"), done(0, CPU)]
    page = page_of(timeline.of(events, [failed(CELLS[CPU]), failed(CELLS[CUDA])]))
    assert "2 failed" in page
    assert "1 more failed" in page
    assert page.index("First error") < page.index(f"<h3>{CPU}</h3>")
    assert "<code>csrc/a.h, line 7</code>" in page
    assert "<code>&lt;i&gt;.cpp</code>" in page
    assert "error: &lt;b&gt;\\u001b[31mno\n    7 | #error &lt;b&gt;\n" in page
    assert "the whole log: /logs/&lt;relu&gt;.log" in page
    assert "\x1b" not in page


def test_an_error_of_no_compiler_is_shown_as_it_is():
    error = AuditError("relu.whl breaks rules\n  abi3: uses PyFoo")
    found = first_error([], [CellOutcome(cell=CELLS[CPU], status="failed", reason=error.message, error=error)])
    assert (found.headline, found.lines) == ("relu.whl breaks rules", ("  abi3: uses PyFoo",))
    assert (found.place, found.source, found.help) == ("", "", "")
