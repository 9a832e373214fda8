"""Folders of kernels whose names mean something to a shell, a terminal or a CI service."""

import json

import pytest

from builder.cli import run
from tests.cli.folders import write

NAMES = [
    "two words",
    "quo'te",
    "line\nbreak",
    "x\n::error::stolen",
    "\x1b[31mred",
    "${{ github.token }}",
    "-v",
    "é",
    "a;b",
]


@pytest.fixture(params=NAMES)
def folder(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "odd-one", folder=request.param)
    write(tmp_path, "plain")
    return request.param


def commands_in(text):
    return [line for line in text.splitlines() if line.lstrip().startswith("::") and "file=" not in line]


@pytest.mark.parametrize("form", ["table", "names", "json", "gitlab", "github"])
def test_no_name_of_a_folder_is_a_command_or_a_word_of_its_own_in_a_plan(folder, form, capsys):
    code = run(["matrix", "./*", "--format", form])
    out, err = capsys.readouterr()
    assert commands_in(out + err) == []
    assert "\x1b" not in out + err
    if form == "json":
        assert sorted(json.loads(out)["kernels"]) == sorted([folder, "plain"])
    if form in {"github", "gitlab"} and folder != "-v":
        assert code == 2
        assert out == ""


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_no_name_of_a_folder_is_a_command_in_what_check_finds(folder, form, tmp_path, capsys):
    config = tmp_path / folder / "build.toml"
    config.write_text(config.read_text(encoding="utf-8").replace('"MIT"', '"bsd"'), encoding="utf-8")
    assert run(["check", "./*", "--format", form]) == 0
    out, err = capsys.readouterr()
    assert commands_in(out + err) == []
    assert "\x1b" not in out + err


@pytest.mark.usefixtures("folder")
def test_no_name_of_a_folder_is_a_command_in_a_build(capsys):
    assert run(["build", "./*", "--dry-run", "--json"]) == 0
    out, err = capsys.readouterr()
    assert commands_in(out + err) == []
    assert len(json.loads(out)["kernels"]) == 2
