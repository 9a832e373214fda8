"""The sizes of wheels, by architecture, on the page of a build."""

import re
from dataclasses import replace

from builder.audit.sizes import CodeSize, FileSize, WheelSizes
from builder.engine.outcome import CellOutcome
from builder.matrix.variant import Variant
from builder.report.page import wheel_section
from tests import wheels
from tests.report.recorded import CELLS, CPU, CUDA, built, done, page, step


def code(what, size):
    return CodeSize(arch="8.0", what=what, ptx=False, size=size, plain=size, pieces=1)


def test_device_code_is_summed_over_libraries_and_the_largest_is_first():
    files = (
        FileSize(name="a.so", size=4096, code=(code("machine code for 8.0", 1024), code("PTX for 9.0", 2048))),
        FileSize(name="b.so", size=3072, code=(code("machine code for 8.0", 2048),)),
        FileSize(name="c.so", size=3072),
        FileSize(name="x.py", size=1),
        FileSize(name="y.py", size=0),
    )
    found = wheel_section("cell", WheelSizes(packed=2048, files=files))
    assert found.words == "2.0 KiB, unpacked 10.0 KiB"
    assert list(found.rows) == [
        ("c.so", "3.0 KiB", "30 %"),
        ("machine code for 8.0", "3.0 KiB", "30 %"),
        ("PTX for 9.0", "2.0 KiB", "20 %"),
        ("code for processors and data, in libraries with code for GPUs", "2.0 KiB", "20 %"),
        ("2 other files", "1 B", "0 %"),
    ]


def test_an_empty_wheel_has_no_parts():
    found = wheel_section("cell", WheelSizes(packed=2048, files=(FileSize(name="x.py", size=0),)))
    assert (found.words, found.rows) == ("2.0 KiB, unpacked 0 B", (("x.py", "0 B", "0 %"),))


def test_the_page_has_each_wheel_and_says_of_one_that_cannot_be_read_why(monkeypatch, tmp_path):
    wheel = wheels.make(tmp_path, "relu", Variant.parse(CPU))
    gone = tmp_path / wheel.name.replace("cpu", "cu130")
    outcomes = [replace(built(CPU), wheel=wheel), CellOutcome(cell=CELLS[CUDA], status="hit", wheel=gone)]
    text = page(monkeypatch, [step(0, CPU, "preparing"), done(9, CPU)], outcomes)
    assert f"<summary>{CPU}: {wheel.stat().st_size / 1024:.1f} KiB, unpacked" in text
    assert "relu/metadata.json</td>" in text
    assert re.search(rf"<summary>{CUDA}: &#39;\S+&#39; is not a file</summary>", text)


def test_a_build_without_wheels_has_no_such_part(monkeypatch):
    assert "Sizes by architecture" not in page(monkeypatch, [step(0, CPU, "preparing")], [built(CPU)])


def test_names_of_files_are_shown_as_text():
    found = wheel_section("c", WheelSizes(packed=1, files=(FileSize(name="<b>\x1b", size=9),)))
    assert [what for what, *_ in found.rows] == ["<b>\\u001b"]
