"""`.ci/torch-day`, with programs in the place of builder and of the tests."""

import functools
import os
import shutil
import signal
import subprocess

import pytest

from tests.given import processes
from tests.given.files import program
from tests.paths import ROOT

SCRIPT = ".ci/torch-day"
READ = """#!/bin/sh
\
case "$3" in
torch-day)
  echo "$@" >asked
  echo "reading torch 2.99.0" >&2
  echo "reading torch-2.99.0-cp314-cp314-manylinux_2_28_x86_64.whl" >&2
  echo "+the change"
  echo "look at: a thing" >&2
  echo "did not answer: an index" >&2
  echo "wrote matrix.toml" >&2
  exit 0
  ;;
build) echo "$@" >built ;;
esac
"""
BUILT = """
echo "relu:torch299-cpu: built in 1.0 s" >&2
echo "2 cells skipped: needs another machine" >&2
echo "2 built, 2 skipped" >&2
"""
BROKEN = """
echo "relu:torch299-cpu: FAILED: nvcc failed" >&2
echo "error: nvcc failed" >&2
echo "1 built, 1 FAILED" >&2
exit 4
"""
ROWS = """\
  { torch = "2.98", backend = "cpu", system = "old-linux", variant = "a" },
  { torch = "2.99", backend = "cpu", system = "x86_64-linux", variant = "b" },
  { torch = "2.99", backend = "cuda", system = "x86_64-linux", variant = "c" },
  { torch = "2.99", backend = "cuda", system = "aarch64-linux", variant = "d" },
"""
FAILED = "FAILED tests/a.py::test_b[1 - 2] - assert 1\nERROR tests/c.py - OSError: no\n=== 2 failed ==="


@pytest.fixture
def checkout(tmp_path):
    """A folder with the script, and programs that say what those of a checkout would."""
    (tmp_path / ".ci").mkdir()
    shutil.copy2(ROOT / SCRIPT, tmp_path / SCRIPT)
    (tmp_path / "builder/data").mkdir(parents=True)
    (tmp_path / "builder/data/matrix.toml").write_text(ROWS, encoding="utf-8")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    program(tmp_path / ".venv/bin/python", READ + BUILT)
    (tmp_path / "tests-say").write_text("2 passed\n", encoding="utf-8")
    (tmp_path / "Makefile").write_text("test:\n\t@cat tests-say\n", encoding="utf-8")
    return tmp_path


ENV = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
run = functools.partial(processes.run, check=None, env=ENV, cwd="/")


def test_the_data_is_written_tested_and_built_with(checkout):
    done = run(checkout / SCRIPT, "2.99", "--partial")
    assert done.returncode == 0, done.stderr
    assert (checkout / "asked").read_text(encoding="utf-8").split() == [
        *("-m", "builder", "torch-day", "2.99", "--partial", "--write", "--record", "build/torch-day/read.json")
    ]
    built = (checkout / "built").read_text(encoding="utf-8")
    assert "--torch 2.99 --system=aarch64-linux --system=x86_64-linux --set release --set preview" in built
    steps = [line for line in done.stdout.splitlines() if line.startswith("== ")]
    assert [step.partition(":")[0] for step in steps] == ["== 1 of 3", "== 2 of 3", "== 3 of 3", "== torch 2.99"]
    assert done.stdout.partition("== torch 2.99: what a person has to look at\n")[2].splitlines() == [
        "the change, with the source of each line: build/torch-day/change.diff",
        "look at: a thing",
        "did not answer: an index",
        "wrote matrix.toml",
        "builds (more: build/torch-day/builds.txt):",
        "  2 cells skipped: needs another machine",
        "  2 built, 2 skipped",
    ]
    assert (checkout / "build/torch-day/change.diff").read_text(encoding="utf-8") == "+the change\n"


def test_whoever_goes_on_sees_the_change_that_was_written_before(checkout):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "--quiet"], ["add", "builder"], ["commit", "--quiet", "--message", "data"]):
        subprocess.run([*git, *arguments], cwd=checkout, check=True)
    assert run(checkout / SCRIPT).returncode == 0
    (checkout / "builder/data/matrix.toml").write_text(f"{ROWS}# written\n", encoding="utf-8")
    program(checkout / ".venv/bin/python", READ.replace('echo "+the change"', "") + BUILT)
    assert "\n+the change\n" in run(checkout / SCRIPT).stdout
    subprocess.run(["git", "checkout", "--quiet", "builder/data"], cwd=checkout, check=True)
    assert "+the change" not in run(checkout / SCRIPT).stdout


def test_what_fails_is_named_at_the_end_and_keeps_nothing_from_being_tried(checkout):
    (checkout / "tests-say").write_text(f"{FAILED}\n", encoding="utf-8")
    (checkout / "Makefile").write_text("test:\n\t@cat tests-say; false\n", encoding="utf-8")
    program(checkout / ".venv/bin/python", READ + BROKEN)
    done = run(checkout / SCRIPT)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "failed: the tests, builds with torch 2.99"
    shown = done.stdout.partition("== torch 2.99: what a person has to look at\n")[2].splitlines()
    tests = shown.index("tests that failed (why: build/torch-day/tests.txt; which are meant to: docs/torch-day.md):")
    assert shown[tests + 1 : tests + 3] == ["  tests/a.py::test_b[1 - 2] - assert 1", "  tests/c.py - OSError: no"]
    assert shown[-3:] == ["  relu:torch299-cpu: FAILED: nvcc failed", "  error: nvcc failed", "  1 built, 1 FAILED"]


def test_nothing_is_tried_where_no_data_was_written(checkout):
    program(checkout / ".venv/bin/python", '#!/bin/sh\necho "error: torch 2.99 is not published" >&2\nexit 2\n')
    done = run(checkout / SCRIPT, "2.99")
    assert done.returncode == 2
    assert "error: torch 2.99 is not published" in done.stdout
    assert "== 2 of 3" not in done.stdout
    assert not (checkout / "built").exists()


def test_whoever_stops_it_hears_how_to_go_on_and_how_to_go_back(checkout):
    (checkout / "Makefile").write_text("test:\n\t@echo begun; kill -INT 0; sleep 60\n", encoding="utf-8")
    command = [str(checkout / SCRIPT)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores this signal, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
    ) as started:
        _, said = started.communicate(timeout=50)
    assert started.returncode in (130, -signal.SIGINT)
    assert "stopped. The same command goes on" in said
    assert not (checkout / "built").exists()
