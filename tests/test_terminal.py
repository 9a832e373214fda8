"""Text of strangers drives neither a terminal nor the log of a CI service."""

import ast
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import cli, json_text, run, terminal
from builder.audit.report import AuditReport, Finding
from builder.cli import view
from builder.engine.outcome import CellOutcome, Event
from builder.errors import ToolError
from builder.kernel import load
from builder.matrix import rows, select
from tests.given.processes import command, output

ROOT = Path(__file__).parent.parent / "builder"
RELU = ROOT.parent / "examples" / "relu"
WRITING = ("stdout.write", "stderr.write", "stream.write", "console.print", "stdout.buffer.write")
DRIVES = re.compile(r"^\s*::[A-Za-z][\w-]*([ \t].*)?::|##(\[|vso\[|teamcity\[)", re.MULTILINE)
"""What the runner of GitHub, and those of Azure and TeamCity, take for a command."""
EVIL = "a\x1b[31m\x9b2J\x07\u202eb\u2066\r::add-mask::evil\n  ::error file=x::evil\n##[add-mask]x ##vso[task.x]\ud800"


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_no_text_has_what_a_terminal_obeys_or_hides(text):
    shown = terminal.safe(text)
    assert all(character in "\n\t" or character.isprintable() for character in shown)
    assert not any(
        unicodedata.category(character) in {"Cc", "Cf", "Cs"} for character in shown if character not in "\n\t"
    )
    assert terminal.safe(shown) == shown


@given(
    st.lists(
        st.sampled_from(["::", ":", "##", "#", "[", "vso[", "add-mask", "\n", "\r", " ", "\t", "\x0b", "é", "\x1b"])
    )
)
def test_no_text_has_a_command_of_a_ci_service(parts):
    shown = terminal.safe("".join(parts))
    assert not any(DRIVES.search(line) for line in re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", shown))


@given(st.text("abcdefghijklmnopqrstuvwxyz ÄÖÜ漢字🙂0123456789.,:;/_-()[]{}<>'\"\n\t"))
def test_plain_text_stays_as_it_is(text):
    assert terminal.safe(text) == text or DRIVES.search(text)


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_an_annotation_is_one_line_with_one_message(title, message):
    line = f"::error title={terminal.attribute(title)}::{terminal.data(message)}"
    assert line.replace("\t", " ").isprintable()
    assert line.split("::", 2)[1].count("=") == 1 + title.count("=")


def test_the_names_of_a_stranger_make_no_line_of_their_own():
    good, evil = (
        AuditReport(
            wheel="a.whl",
            rules=("layout",),
            findings=(Finding(text, "layout", text, text, text),),
        )
        for text in ("x\nerror: all good", EVIL)
    )
    shown = good.to_text()
    assert [line.lstrip().partition(":")[0] for line in shown.splitlines()] == ["a.whl", "error", "why", "help"]
    text = json_text.document(evil.to_dict())
    assert json.loads(text)
    assert text.isascii()


@pytest.mark.parametrize("github", [False, True])
def test_what_a_compiler_says_is_shown_and_not_obeyed(capsys, github):
    cell = select(load(RELU).config, rows())[0]
    shown = view.GitHub() if github else view.Plain()
    shown.show(Event(variant=cell.variant, kind="note", text=EVIL))
    failed = CellOutcome(cell=cell, status="failed", reason=EVIL, error=ToolError(EVIL))
    shown.show(Event(variant=cell.variant, kind="done", outcome=failed))
    terminal.err(view.summary((failed,)))
    said = capsys.readouterr().err
    own = f"::error title={cell.variant}::"
    others = [line for line in said.split("\n") if not line.startswith(own)]
    assert not any(DRIVES.search(line) for line in others)
    assert (len(others) < len(said.split("\n"))) == github
    assert all(character == "\n" or character.isprintable() for character in said)


def test_a_log_has_no_control_characters(tmp_path):
    run.run([sys.executable, "-c", f"print({EVIL[:-1]!r})"], log=tmp_path / "log")
    text = (tmp_path / "log").read_text(encoding="utf-8")
    assert all(character == "\n" or character.isprintable() for character in text)


def test_an_error_is_shown_safely(tmp_path, capsys):
    name = "\x1b]0;pwned\x07\u202e\n::add-mask::evil"
    assert cli.run(["check", str(tmp_path / name)]) == 2
    assert cli.run(["build", str(tmp_path / name)]) == 2
    assert cli.run([name]) == 2
    assert cli.run(["audit", str(tmp_path / name)]) != 0
    said = "".join(capsys.readouterr())
    assert all(character in "\n\t" or character.isprintable() for character in said)
    assert not DRIVES.search(said)


def test_a_document_is_the_same_bytes_in_a_file(tmp_path):
    with (tmp_path / "CMakeLists.txt").open("wb") as file:
        subprocess.run([sys.executable, "-m", "builder", "render", RELU, "--backend", "cpu"], stdout=file, check=True)
    assert (tmp_path / "CMakeLists.txt").read_bytes() == output(
        *command("render", RELU, "--backend", "cpu"), text=False
    )


def test_a_document_on_a_terminal_is_safe():
    script = "import sys; from builder import terminal; terminal.document('x\\x1b[2J\\n')"
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", script], stdout=follower, check=True)
    assert os.read(leader, 1000).strip() == b"x\\u001b[2J"
    os.close(leader)
    os.close(follower)


def test_no_module_but_one_writes_for_people():
    """What is printed elsewhere is what this program says of itself, or what `terminal.safe` gave."""
    own = {"cli/__init__.py": {"sys.stdout.write"}, "terminal.py": {"stream.write"}}
    own["audit/limited.py"] = {"stream.write"}  # to the process that asked, which shows it
    own["cli/view.py"] = {"self._console.print"}  # what `screen.fitted` made safe, with colours
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            writes = called in {"print", "click.echo", "click.secho", "pprint"} or (
                called.endswith(
                    ("stdout.write", "stderr.write", "stream.write", "console.print", "stdout.buffer.write")
                )
            )
            safe = bool(node.args) and ast.unparse(node.args[0]).startswith("terminal.safe(")
            if writes and not safe and called not in own.get(name, ()):
                found.append(f"{name}: {called}")
    assert not [each for each in found if not each.startswith("nix/")]  # scripts that run in Nix's sandbox
