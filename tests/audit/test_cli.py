import json

import pytest

from builder import cli

NOARCH = {"label": "torch.cpu", "tag": "py3-none-any", "requires": "torch"}


def test_a_right_wheel_exits_with_0(make_wheel, capsys):
    assert cli.run(["audit", str(make_wheel(**NOARCH))]) == 0
    assert capsys.readouterr().out.startswith("demo-1.0.0+torch.cpu-py3-none-any.whl: ok (12 rules: ")


def test_findings_exit_with_5_and_say_what_where_why_and_what_to_do(make_wheel, capsys):
    assert cli.run(["audit", str(make_wheel(**NOARCH, package={"a.o": b""}))]) == 5
    out = capsys.readouterr().out
    assert "1 finding\n" in out
    assert "error: demo/a.o: layout: a.o\n    why:  it is a left-over" in out
    assert "\n    help: leave it out\n" in out


def test_json_is_one_document_for_all_wheels(make_wheel, capsys):
    wrong = make_wheel(**NOARCH, package={"a.o": b""})
    assert cli.run(["audit", "--json", str(wrong), str(wrong)]) == 5
    reports = json.loads(capsys.readouterr().out)["wheels"]
    assert [report["ok"] for report in reports] == [False, False]
    (finding,) = reports[0]["findings"]
    assert finding.keys() == {"file", "rule", "symbol", "why", "remedy", "severity"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("demo-1.0-py3-none-any.whl", b"not a zip", id="no zip"),
        pytest.param("demo-1.0-py3-none-any.whl", b"", id="empty"),
        pytest.param("demo.whl", b"", id="no name"),
        pytest.param("gone-1.0-py3-none-any.whl", None, id="missing"),
        pytest.param(f"{'x' * 300}-1.0-py3-none-any.whl", None, id="longer than names are"),
    ],
)
def test_what_is_no_wheel_exits_with_2_and_the_others_are_judged(make_wheel, tmp_path, capsys, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert cli.run(["audit", str(tmp_path / name), str(make_wheel(**NOARCH))]) == 2
    shown = capsys.readouterr()
    assert "ok (12 rules" in shown.out
    assert shown.err.startswith("error: ")
    assert name[:60] in shown.err
    assert "Traceback" not in shown.err


def test_a_member_that_is_damaged_exits_with_2(make_wheel, capsys):
    path = make_wheel(**NOARCH, package={"data.txt": b"x" * 5000})
    content = bytearray(path.read_bytes())
    at = content.index(b"demo/data.txt")
    content[at + 14 : at + 20] = b"\xff" * 6
    path.write_bytes(content)
    assert cli.run(["audit", str(path)]) == 2
    assert "is damaged" in capsys.readouterr().err
