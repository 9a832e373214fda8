"""Colours that mean something and lines that fit, on a terminal alone; with a stream that says that it is one."""

import io
import re
import sys

import pytest

from builder import cli, kernel, terminal
from builder.ci.plan import make, text
from builder.cli import COMMANDS, group, screen
from builder.cli.screen import painted, wrapped
from builder.matrix import rows
from builder.matrix.selection import Scope
from tests.given.kernels import PLAIN, TINY

RED, GREEN, YELLOW, CYAN = ("\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[36m")


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Return a function that runs a command on a terminal of some width, and returns what is on it."""
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def run(*argv, columns=60, **environ):
        for name, value in {"COLUMNS": str(columns), **environ}.items():
            monkeypatch.setenv(name, value)
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        group.run(list(argv))
        return stream.getvalue()

    return run


@pytest.mark.parametrize(
    ("line", "word", "color"),
    [
        ("error: no", "error:", RED),
        ("  error[B010]: no", "error[B010]:", RED),
        ("a.cpp:1:2: error: no", "error", RED),
        ("relu-cpu: FAILED: the build failed", "FAILED", RED),
        ("1 built, 2 FAILED", "FAILED", RED),
        ("CMake Error at cmake/a.cmake:3 (message):", "CMake Error", RED),
        ("a.cpp:1:2: warning: slow", "warning", YELLOW),
        ("1 built, 3 warnings", "3 warnings", YELLOW),
        ("--  1 cell: no nvcc", "--", YELLOW),
        ("  torch 2.13, cpu: left out [backend]", "left out [backend]", YELLOW),
        ("ok  git", "ok", GREEN),
        ("09:31:37  ok      start: unchanged", "ok", GREEN),
        ("relu-cpu: built in 3 s", "built", GREEN),
        ("1 unchanged", "1 unchanged", GREEN),
        ("note: x", "note:", CYAN),
        ("  help: x", "help:", CYAN),
    ],
)
def test_a_word_with_a_meaning_has_its_colour(line, word, color):
    assert f"{color}{word}\x1b[0m" in painted(line)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted(line)) == line


@pytest.mark.parametrize("line", ["terror: x", "errors of a file", "okay", "csrc/built.cpp", "---", "the note: x"])
def test_a_word_without_a_meaning_has_none(line):
    assert painted(line) == line


def test_a_line_is_broken_between_words_and_what_follows_hangs():
    assert wrapped("  help: install the toolkit and name it with CUDA_HOME", 30) == [
        "  help: install the toolkit",
        "      and name it with",
        "      CUDA_HOME",
    ]


def test_a_word_longer_than_the_line_and_a_line_of_source_stay_whole():
    path = "csrc/" + "a" * 60 + ".cpp:18:24:"
    assert path in wrapped(f"{path} error: no", 40)
    source = "   18 | " + "x + " * 30
    assert wrapped(source, 40) == [source]


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("command", [["matrix", str(TINY)], ["matrix", "--explain", str(PLAIN)], ["why", "--help"]])
def test_what_a_terminal_shows_fits_it_with_no_word_broken(shown, command, columns):
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(*command, columns=columns))
    assert max(map(len, text.splitlines())) <= columns
    assert "x86_64-linux" in text or command[0] == "why"


def test_a_narrow_matrix_is_without_the_systems_with_which_the_names_end():
    plan = make(kernel.load(TINY), rows(), Scope())
    wide, narrow = (text.table(plan, None, width) for width in (None, 60))
    assert "  system" in wide
    assert "  system" not in narrow
    assert [line.split()[0] for line in wide.splitlines() if line] == [
        line.split()[0] for line in narrow.splitlines() if line
    ]


def test_colours_are_for_a_terminal_that_has_them_and_for_who_asks(shown, monkeypatch):
    assert "\x1b[1mcpu\x1b[0m (" in shown("matrix", str(PLAIN))
    assert "\x1b" not in shown("matrix", str(PLAIN), TERM="dumb")
    assert "\x1b" not in shown("matrix", str(PLAIN), TERM="xterm", NO_COLOR="1", FORCE_COLOR="1")
    monkeypatch.delenv("NO_COLOR")
    assert screen.has_color(io.StringIO())
    monkeypatch.delenv("FORCE_COLOR")
    assert not screen.has_color(io.StringIO())
    assert not screen.has_color(None)


def test_an_error_of_use_is_red_and_help_has_headings(shown):
    assert f"{RED}Error:\x1b[0m No such command 'bild'. Did you mean 'build'?" in shown("bild")
    assert "\x1b[1mUsage:\x1b[0m builder why" in shown("why", "--help")
    assert f"{CYAN}--json\x1b[0m " in shown("why", "--help")
    assert "\x1b" not in shown("why", "--help", NO_COLOR="1")


def test_no_text_of_others_brings_its_own_colours(shown, tmp_path):
    (tmp_path / "build.toml").write_text('[general]\n"\\u001b[31mx" = 1\n')
    assert "\x1b[31mx" not in shown("matrix", str(tmp_path))


def test_what_is_fitted_is_safe():
    assert screen.fitted("\x1b[2Jx", None, colored=True) == "\\u001b[2Jx"


def test_results_on_github_and_in_a_pipe_are_as_they_are(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    line = "relu: FAILED: " + "word " * 40
    screen.err(line)
    screen.out(line)
    assert capsys.readouterr() == (f"{line}\n", f"{line}\n")
    assert terminal.safe(line) == line


def test_the_help_has_each_command_once_in_a_group_and_fits():
    named = [name for names in cli.GROUPS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS)
    assert max(map(len, cli.help_text(width=60).splitlines())) <= 60
    assert "\x1b[1mPublish:\x1b[0m\n" in cli.help_text(colored=True)
