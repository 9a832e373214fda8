"""What `builder repro` says of two wheels, and the table of the documentation; no compiler is needed."""

import re

import pytest

from benchmarks.repro_table import BACKENDS, END, START
from builder.cli.group import run
from builder.metadata import KernelMetadata
from builder.repro import difference, inputs
from builder.repro.variations import VARIATIONS
from builder.wheel.archive import Bytes, pack
from tests import needs
from tests.given.device_code import fatbin, image
from tests.paths import ROOT

INFO = "demo-1.0.dist-info"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(folder, epoch=315532800, **members):
    files = {name.replace("__", "."): Bytes(content) for name, content in members.items()}
    files |= {f"{INFO}/WHEEL": Bytes(WHEEL.encode()), f"{INFO}/METADATA": Bytes(b"Name: demo\nVersion: 1.0\n")}
    folder.mkdir()
    path = folder / "demo-1.0-py3-none-any.whl"
    path.write_bytes(pack(files, dist_info=INFO, epoch=epoch))
    return path


def test_without_the_reader_of_libraries_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(difference, "find_spec", lambda _: None)
    assert run(["repro", str(ROOT / "examples/relu")]) == 4
    said = capsys.readouterr().err
    assert "needs pyelftools" in said
    assert "help: python -m pip install 'kernel-wheel-builder[repro]'" in said


def test_the_same_bytes_have_no_difference(tmp_path):
    assert difference.between(wheel(tmp_path / "a", a__py=b"1"), wheel(tmp_path / "b", a__py=b"1")) == ()


def test_a_text_names_its_lines(tmp_path):
    (only,) = difference.between(wheel(tmp_path / "a", a__py=b"x = 1\n"), wheel(tmp_path / "b", a__py=b"x = 2\n"))
    assert (only.member, only.detail) == ("a.py", "-x = 1 +x = 2")


def test_a_member_of_one_wheel_is_said(tmp_path):
    (only,) = difference.between(wheel(tmp_path / "a", a__py=b""), wheel(tmp_path / "b", a__py=b"", b__py=b""))
    assert (only.member, only.detail) == ("b.py", "only in the second")


def test_an_archive_of_another_time_is_said_although_its_members_are_the_same(tmp_path):
    first, second = wheel(tmp_path / "a", a__py=b""), wheel(tmp_path / "b", a__py=b"", epoch=1_000_000_000)
    assert ("a.py", "date time") in {(each.member, each.part) for each in difference.between(first, second)}


def test_what_is_no_library_is_compared_as_bytes():
    assert list(difference.of_libraries(b"abc\0", b"abd\0")) == [("content", "from byte 0x2: 'abc' and 'abd'")]


@needs.only_with("diffoscope")
def test_the_report_of_diffoscope_names_the_member_and_the_line(tmp_path):
    said = difference.diffoscope(
        wheel(tmp_path / "a", a__py=b"x = 'planted one'\n"), wheel(tmp_path / "b", a__py=b"x = 'planted two'\n")
    )
    assert "a.py" in said
    assert "-x = 'planted one'" in said
    assert "+x = 'planted two'" in said


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("echo 'it differs'; exit 1", "it differs\n", id="differs"),
        pytest.param("exit 0", "", id="same"),
        pytest.param("echo 'no libmagic' >&2; exit 2", "note: diffoscope fails: no libmagic\n", id="fails"),
    ],
)
def test_a_diffoscope_that_fails_is_said_to(tmp_path, monkeypatch, script, said):
    (tmp_path / "diffoscope").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "diffoscope").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert difference.diffoscope(tmp_path / "a.whl", tmp_path / "b.whl") == said


def test_without_diffoscope_there_is_no_report(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert difference.diffoscope(tmp_path / "a.whl", tmp_path / "b.whl") == ""


def test_a_fatbin_names_the_entry_that_differs():
    first = fatbin(image(1, 80, content=b"same    "), image(1, 90, content=b"one way "))
    second = fatbin(image(1, 80, content=b"same    "), image(1, 90, content=b"another "))
    ((entry, detail),) = difference._entries(first, second)  # noqa: SLF001  an ELF file around it would hide what is tested
    assert entry == "fatbin entry 1 (PTX for 9.0)"
    assert "'one way '" in detail


def test_the_record_of_inputs_is_compared_field_by_field():
    metadata = {
        "provenance": {"kernel-builder": {"version": "1"}},
        "build": {"project": "p", "framework": "f", "pins": "q", "toolchain": {"cxx-version": "g++ 12"}},
    }
    published = inputs.inputs_of(KernelMetadata(metadata))
    assert sorted(published) == ["builder", "cxx-version", "framework", "pins", "project"]
    (only,) = inputs.differences(published, {**published, "cxx-version": "g++ 13"})
    assert str(only) == "cxx-version (identity of a tool): published with g++ 12, here g++ 13"


DOCUMENTED = (ROOT / "docs/reproducibility.md").read_text(encoding="utf-8").split(START)[1].split(END)[0]
HEAD, _, *ROWS = (re.split(r" \| ", line.strip("| \n")) for line in DOCUMENTED.strip().splitlines())


def test_the_documented_table_has_every_variation_and_backend():
    assert HEAD[2:] == list(BACKENDS)
    assert [(row[0].strip("`"), row[1]) for row in ROWS] == [(each.name, each.what) for each in VARIATIONS]


@pytest.mark.parametrize("column", range(len(BACKENDS)), ids=list(BACKENDS))
def test_the_documented_table_has_no_difference(column):
    assert {row[column + 2] for row in ROWS} == {"same"}
