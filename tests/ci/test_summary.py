"""The summary of a build, in which nothing is markup but the table."""

import json

import pytest

from builder.ci.__main__ import main, markdown, read
from builder.errors import BuilderError

ENTRY = {"variant": "torch-cpu", "status": "built", "wheel": None, "sha256": None, "seconds": 1.25}


def test_a_row_has_wheel_size_time_digest_and_reason(tmp_path):
    wheel = tmp_path / "relu-1.0.0-py3-none-any.whl"
    wheel.write_bytes(b"x" * 2048)
    text = markdown([{**ENTRY, "wheel": str(wheel), "sha256": "ab" * 32, "reason": "sources changed: relu.cpp"}])
    row = text.splitlines()[2]
    assert row.startswith("| `torch-cpu` | `relu-1.0.0-py3-none-any.whl` | 2.0 KiB | 1.2 s | `" + "ab" * 32)
    assert "built: sources changed&#58; relu.cpp" in row


@pytest.mark.parametrize(
    ("status", "word"),
    [("hit", "taken from the store"), ("skipped", "skipped"), ("failed", "**failed**"), ("odd", "odd")],
)
def test_a_row_says_how_the_cell_ended(status, word):
    assert word in markdown([{**ENTRY, "status": status}])


@pytest.mark.parametrize(
    "reason",
    [
        "a | b",
        "a\nb\r\n| c |",
        "<script>alert(1)</script>",
        "![x](https://example.org/x.png)",
        "[x](https://example.org)",
        "`code`",
        "::set-env name=x::y",
        "\x1b[31mred",
        "${{ github.token }}",
        "@everyone",
        "x" * 10_000,
    ],
)
def test_no_reason_is_markup_or_breaks_the_table(reason):
    text = markdown([{**ENTRY, "reason": reason, "variant": reason}])
    assert len(text.splitlines()) == 3
    assert text.splitlines()[2].count("|") == 7
    assert len(text) < 2000
    for bad in ("<script", "](", "\x1b", "@everyone |", "\n::"):
        assert bad not in text.splitlines()[2].split("|")[6]


def test_a_wheel_that_is_elsewhere_has_no_size():
    assert "| `a.whl` |  |" in markdown([{**ENTRY, "wheel": "/nowhere/a.whl"}])


def test_several_reports_are_one_table(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps([{**ENTRY, "variant": f"torch-{name}"}]), encoding="utf-8")
    assert main(["summary", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert out.count("| `torch-") == 2


def test_a_build_that_stopped_before_its_first_cell_has_an_empty_report(tmp_path, capsys):
    (tmp_path / "a").touch()
    assert main(["summary", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out == "Nothing was built.\n"


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"x": 1}]', "null"])
def test_what_is_no_report_is_refused(tmp_path, text, capsys):
    (tmp_path / "a").write_text(text, encoding="utf-8")
    with pytest.raises(BuilderError, match="is not the report of `builder build --json`"):
        read([tmp_path / "a"])
    assert main(["summary", str(tmp_path / "a")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_missing_report_is_said(tmp_path):
    with pytest.raises(BuilderError, match="cannot read"):
        read([tmp_path / "nothing"])


def test_the_report_of_several_kernels_says_whose_each_cell_is_and_what_was_refused(tmp_path):
    report = {"kernels": {"kernels/one": [ENTRY], "kernels/two": []}, "left-out": {}, "errors": {"bad": "no key"}}
    (tmp_path / "a").write_text(json.dumps(report), encoding="utf-8")
    rows = markdown(read([tmp_path / "a"])).splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| `kernels/one: torch-cpu`", "| `bad`"]
    assert "**failed**: no key" in rows[1]


@pytest.mark.parametrize("kernels", [1, {"a": 1}, {"a": [1]}, {"a": [{}]}])
def test_what_only_looks_like_the_report_of_several_kernels_is_refused(kernels, tmp_path):
    (tmp_path / "a").write_text(json.dumps({"kernels": kernels, "errors": {}}), encoding="utf-8")
    with pytest.raises(BuilderError, match="is not the report of `builder build --json`"):
        read([tmp_path / "a"])
