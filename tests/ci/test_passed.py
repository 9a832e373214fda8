"""What CI leaves out of `make test-all`: the tests that passed in `make test` a moment before, and no other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import passed
from tests.paths import ROOT

pytestmark = pytest.mark.slow

TESTS = """
import pytest

def test_passing(): pass

@pytest.mark.parametrize("number", [1, 2])
def test_each(number): assert number == 1

@pytest.mark.cmake
def test_compiling(): pass

def test_skipping(): pytest.skip("not here")

@pytest.mark.xfail
def test_known(): assert False

@pytest.fixture
def broken():
    yield
    raise OSError

def test_leaving_something(broken): pass
"""
ALL = {"test_passing", "test_each[1]", "test_each[2]", "test_compiling", "test_skipping", "test_known"}
PASSING = {"test_passing", "test_each[1]", "test_compiling"}


@pytest.fixture
def run(tmp_path):
    """Run the tests above with options; return the names of those that ran, and what pytest said."""
    (tmp_path / "test_these.py").write_text(TESTS, encoding="utf-8")
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n  cmake: compiles\n  torch: imports it\n", encoding="utf-8")

    def run(*options, workers=()):
        plugins = ("-p", "no:cacheprovider", "-p", "tests.passed")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-vrA", *plugins, *workers, "-c", settings, *options, tmp_path],
            cwd=ROOT,
            env={**os.environ, "BUILDER_TESTS_REQUIRE": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        ran = re.findall(
            r"test_these\.py::(\S+) (?:PASSED|FAILED|SKIPPED|XFAIL)|(?:\w+) \S*test_these\.py::(\S+) *$",
            done.stdout,
            re.MULTILINE,
        )
        return {first or second for first, second in ran}, done

    return run


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one process", "workers"])
def test_what_passed_is_left_out_and_nothing_else(run, tmp_path, workers):
    file = tmp_path / "passed.json"
    _, first = run(f"--passed-to={file}", workers=workers)
    assert {name.rpartition("::")[2] for name in json.loads(file.read_text())["passed"]} == PASSING, first.stdout
    ran, again = run(f"--passed-before={file}", workers=workers)
    assert ran == (ALL | {"test_leaving_something"}) - PASSING, again.stdout
    assert "up to 3 tests are left out, which passed before\n" in again.stdout
    assert again.returncode == 1


@pytest.mark.parametrize(("fact", "other"), [("files", "0"), ("python", "3.9"), ("packages", {"pytest": "1"})])
def test_all_run_again_where_a_file_or_a_package_is_another_one(run, tmp_path, fact, other):
    file = tmp_path / "passed.json"
    run(f"--passed-to={file}")
    file.write_text(json.dumps({**json.loads(file.read_text()), fact: other}))
    ran, again = run(f"--passed-before={file}")
    assert ran >= ALL, again.stdout
    assert f"3 tests run again, though they passed before: other {fact}\n" in again.stdout


def test_a_test_that_compiles_runs_again_with_another_compiler(run, tmp_path):
    file = tmp_path / "passed.json"
    run(f"--passed-to={file}")
    file.write_text(json.dumps({**json.loads(file.read_text()), "compiler": "g++ 4.8"}))
    ran, again = run(f"--passed-before={file}")
    assert "test_compiling" in ran
    assert not ran & {"test_passing", "test_each[1]"}, again.stdout


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_a_file_that_is_not_there_or_not_whole_ends_the_run(run, tmp_path, text):
    file = tmp_path / "passed.json"
    if text is not None:
        file.write_text(text)
    ran, done = run(f"--passed-before={file}")
    assert not ran
    assert done.returncode not in (0, 1)


def test_a_change_of_any_file_that_git_does_not_ignore_is_seen(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("/build/\n")
    (tmp_path / "code.py").write_text("one\n")
    first = passed.digest_of(tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "build/output").write_text("anything\n")
    assert passed.digest_of(tmp_path) == first
    (tmp_path / "code.py").chmod(0o755)
    assert passed.digest_of(tmp_path) != first
    (tmp_path / "code.py").chmod(0o644)
    (tmp_path / "new.py").write_text("two\n")
    assert passed.digest_of(tmp_path) != first


def test_ci_asks_for_the_package_of_a_tool_where_nothing_is_installed_yet():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (code,) = re.findall(r"python3 -c '(.*?)' \"\$1\"", script, re.DOTALL)
    command = [sys.executable, "-S", "-c", code, "lld"]  # -S: without the packages beside the tests
    env = {"PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, Path(done.stdout.split()[-1]).name) == (0, "lld"), done.stderr
