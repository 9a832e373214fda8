"""`builder port` on the command line."""

from builder.cli import run
from tests.port.projects import SIMPLE, write


def test_a_config_is_written_and_what_remains_is_said(tmp_path, capsys):
    write(tmp_path, SIMPLE)
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{tmp_path}/build.toml\n"
    assert "remains for a person:\n  setup.py:5: " in said.err
    assert (tmp_path / "build.toml").read_text().startswith("[general]\n")


def test_a_second_time_needs_force(tmp_path, capsys):
    write(tmp_path, SIMPLE, {"build.toml": "mine"})
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 3
    assert "pass --force to overwrite" in capsys.readouterr().err
    assert (tmp_path / "build.toml").read_text() == "mine"
    assert run(["port", str(tmp_path), "--no-sandbox", "--force"]) == 0


def test_printing_writes_nothing(tmp_path, capsys):
    write(tmp_path, SIMPLE)
    assert run(["port", str(tmp_path), "--no-sandbox", "--print"]) == 0
    assert capsys.readouterr().out.startswith("[general]\n")
    assert not (tmp_path / "build.toml").exists()


def test_a_variable_has_a_name_and_a_value(tmp_path, capsys):
    write(tmp_path, SIMPLE)
    assert run(["port", str(tmp_path), "--env", "NAME"]) == 2
    assert "'NAME' is not NAME=VALUE" in capsys.readouterr().err


def test_a_setup_that_raises_is_an_error_and_no_traceback(tmp_path, capsys):
    write(tmp_path, "raise ValueError('\\x1b[2Jno')\n")
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: setup.py cannot be recorded\n  setup.py:1: it raised ValueError: ")
    assert "\x1b" not in said
    assert "Traceback" not in said
