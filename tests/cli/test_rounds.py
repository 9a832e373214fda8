"""What a round of `builder watch` says."""

from pathlib import Path
from unittest import mock

import pytest

from builder.cli import run, watch
from builder.cli.watch import Round
from builder.errors import BuilderError, ToolError


@pytest.mark.parametrize(
    ("found", "changed", "line"),
    [
        (Round(ok=True, result="built, 3 passed", seconds=1.23), (), "09:00:00  ok      start: built, 3 passed, 1.2 s"),
        (Round(ok=False, result="not built"), ("a.cpp",), "09:00:00  FAILED  a.cpp: not built, 0.0 s"),
        (Round(ok=True, result="built"), ("a.cpp", "b.h", "c"), "09:00:00  ok      a.cpp and 2 more: built, 0.0 s"),
        (Round(ok=True, result="built"), ("a\n.cpp",), "09:00:00  ok      a\\n.cpp: built, 0.0 s"),
    ],
)
def test_a_round_is_one_line(found, changed, line):
    assert found.line(changed, at="09:00:00") == line


def test_a_round_that_failed_has_the_first_error_on_top_and_the_log_below():
    found = Round(ok=False, result="not built", error="error: no\n  help: yes", log=Path("a.log"))
    assert found.details == "  error: no\n    help: yes\n    log: a.log"
    assert Round(ok=True, result="built", error="x", log=Path("a.log")).details == ""


def test_a_round_that_built_shows_the_warnings_of_compilers():
    found = Round(ok=True, result="built, 1 warning", warnings=("a.cpp:1:2: warning: x\n  1 | x",), log=Path("a.log"))
    assert found.details == "  a.cpp:1:2: warning: x\n    1 | x"


def test_a_log_that_an_error_names_is_named_once():
    assert Round(ok=False, result="", error="error: see a.log", log=Path("a.log")).details == "  error: see a.log"


def test_of_a_long_error_the_first_lines_are_shown():
    lines = Round(ok=False, result="", error="\n".join(map(str, range(100)))).details.splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("  0", 31, "  … and 70 more lines")


def play(error, monkeypatch):
    monkeypatch.setattr(watch.kernels, "load", lambda _root: None)
    request = mock.Mock(**{"prepare.side_effect": error})
    return watch.play(Path(), request, lambda _event: None, tests=True)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(ToolError("no torch", help="install it"), "error: no torch\n  help: install it", id="a tool"),
        pytest.param(BuilderError("error[B010]: x"), "error[B010]: x", id="a diagnostic"),
        pytest.param(BuilderError("warning: x"), "warning: x", id="a warning"),
        pytest.param(FileNotFoundError(2, "No such file", "gone.cpp"), "error: cannot use 'gone.cpp'", id="a file"),
    ],
)
def test_what_the_author_can_mend_is_a_round_that_failed(monkeypatch, error, said):
    found = play(error, monkeypatch)
    assert not found.ok
    assert found.result == "not built"
    assert found.error.startswith(said)


@pytest.mark.parametrize("error", [OSError("no name"), KeyboardInterrupt(), ValueError("a mistake of ours")])
def test_everything_else_ends_watching(monkeypatch, error):
    with pytest.raises(type(error)):
        play(error, monkeypatch)


def test_a_folder_without_a_config_is_a_round_that_failed(tmp_path):
    found = watch.play(tmp_path, mock.Mock(), lambda _event: None, tests=True)
    assert not found.ok
    assert "build.toml" in found.error


def test_where_there_is_no_kernel_nothing_is_watched(tmp_path, capsys):
    assert run(["watch", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "build.toml" in said
    assert "watching" not in said
