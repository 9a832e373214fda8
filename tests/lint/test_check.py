"""`builder check`: what it prints, in which format, and how it exits."""

import contextlib
import json
import os
import pty
import subprocess

import pytest

from builder.cli import run
from tests.given import processes
from tests.given.files import write

SOUND = '[general]\nname = "relu"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cpu"]\n\n[torch-noarch]\n'
WARNED = SOUND.replace('"MIT"', '"bsd"')
BROKEN = SOUND.replace("version = 1\n", "").replace('"cpu"', '"gpu"')
OLD = SOUND.replace("edition = 5\n", "")


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    package = tmp_path / "torch-ext" / "relu"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    return lambda text: write(tmp_path, {"build.toml": text})


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        pytest.param(SOUND, [], 0, id="sound"),
        pytest.param(SOUND, ["--strict"], 0, id="sound, strict"),
        pytest.param(WARNED, [], 0, id="warning"),
        pytest.param(WARNED, ["--strict"], 2, id="warning, strict"),
        pytest.param(BROKEN, [], 2, id="error"),
        pytest.param(OLD, ["--strict"], 0, id="note, strict"),
    ],
)
@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github"])
def test_the_exit_code_is_2_for_an_error_and_0_otherwise(kernel, text, options, code, format_):
    kernel(text)
    assert run(["check", "--format", format_, *options]) == code


def test_the_text_names_every_problem_and_counts_them(kernel, capsys):
    kernel(BROKEN)
    run(["check"])
    assert capsys.readouterr().out == (
        "error[B011]: missing key 'version' in [general]\n"
        "  --> build.toml:1:1 (general)\n"
        "  1 | [general]\n"
        "    | ^^^^^^^^^\n"
        "  help: add 'version = 1'\n"
        "\n"
        "error[B013]: 'gpu' is not a backend\n"
        "  --> build.toml:5:13 (general.backends[0])\n"
        '  5 | backends = ["gpu"]\n'
        "    |             ^^^^^\n"
        "  help: did you mean 'cpu'?\n"
        "\n"
        "build.toml: found 2 errors; `builder check --explain B011` says more\n"
    )


def test_a_sound_kernel_gets_one_line(kernel, capsys):
    kernel(SOUND)
    run(["check"])
    assert capsys.readouterr().out == "build.toml: no problems\n"


def test_json_is_one_document_on_stdout(kernel, capsys):
    kernel(BROKEN)
    run(["check", "--format", "json"])
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert set(document) == {"file", "edition", "problems"}
    assert document["edition"] == 5
    keys = ["severity", "code", "message", "key", "line", "column", "end_line", "end_column", "help"]
    assert [list(problem) for problem in document["problems"]] == [keys, keys]
    assert shown.err == ""


@pytest.mark.parametrize(("text", "edition"), [(SOUND, 5), (OLD, 4), ("not TOML", None)], ids=["5", "4", "unknown"])
def test_json_names_the_edition_that_the_file_is_in(kernel, capsys, text, edition):
    kernel(text)
    run(["check", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["edition"] == edition


def test_github_gets_nothing_for_a_sound_kernel(kernel, capsys):
    kernel(SOUND)
    run(["check", "--format", "github"])
    assert capsys.readouterr().out == ""


def test_a_kernel_is_named_by_its_directory_or_its_config(kernel, capsys, monkeypatch):
    root = kernel(WARNED)
    monkeypatch.chdir(root.parent)
    run(["check", root.name])
    by_directory = capsys.readouterr().out
    run(["check", f"{root.name}/build.toml"])
    assert capsys.readouterr().out == by_directory
    assert f"--> {root.name}/build.toml:5:11" in by_directory


def test_a_problem_of_a_python_file_is_shown_in_that_file(kernel, capsys):
    root = kernel(SOUND)
    (root / "torch-ext" / "relu" / "ops.py").write_text("import torch\ntorch.library.define('relu::f', '()')\n")
    assert run(["check", "--strict"]) == 2
    assert "--> torch-ext/relu/ops.py:2:22\n  2 | torch.library.define('relu::f', '()')\n" in capsys.readouterr().out


def test_a_directory_without_a_config_is_an_error_that_says_what_to_do(capsys, tmp_path):
    assert run(["check", str(tmp_path)]) == 2
    assert "help: " in capsys.readouterr().out


def test_color_is_for_a_terminal(kernel):
    kernel(WARNED)
    main, other = pty.openpty()
    process = subprocess.Popen(processes.command("check"), env=processes.variables(), stdout=other)
    os.close(other)
    shown = b""
    with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
        while chunk := os.read(main, 4096):
            shown += chunk
    os.close(main)
    assert process.wait() == 0
    assert b"\x1b[33m\x1b[1mwarning[B114]" in shown


@pytest.mark.parametrize(
    ("environment", "colored"),
    [
        pytest.param({}, False, id="a pipe"),
        pytest.param({"FORCE_COLOR": "1"}, True, id="FORCE_COLOR"),
        pytest.param({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="NO_COLOR"),
    ],
)
def test_elsewhere_color_is_for_who_asks_for_it(kernel, environment, colored):
    kernel(WARNED)
    assert ("\x1b[" in processes.builder("check", env=environment, check=0).stdout) is colored


def test_a_terminal_that_has_no_unicode_gets_the_report_all_the_same(kernel):
    kernel(SOUND.replace('"MIT"', '"é"'))
    process = processes.builder("check", env={"PYTHONIOENCODING": "ascii"}, check=0)
    assert r"'\xe9' is not an SPDX license expression" in process.stdout


def test_a_config_that_would_drive_a_terminal_is_shown_and_not_obeyed(kernel, capsys):
    kernel(SOUND + '"\\u001b[2J\\u202e" = 1\n# \u202e\n')
    assert run(["check"]) == 2
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_ten_thousand_problems_are_reported_in_every_format(kernel, capsys):
    kernel(SOUND + "".join(f"key{number} = {number}\n" for number in range(10_000)))
    for format_ in ("text", "json", "sarif", "github"):
        assert run(["check", "--format", format_]) == 2
        assert capsys.readouterr().out.count("unknown key 'key") == 10_000
