"""`builder test` of several kernels, with the torch that is installed."""

import os
import subprocess
import sys

import pytest

from tests.cli.folders import write
from tests.paths import ROOT

pytestmark = [pytest.mark.torch]


@pytest.fixture
def test(tmp_path):
    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "builder", "test", *map(str, arguments)],
            env={**os.environ, "BUILDER_STORE": str(tmp_path / "store"), "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


def kernel(root, name, *backends, tests=""):
    folder = write(root / "kernels", name, *backends)
    if tests:
        (folder / "tests").mkdir()
        (folder / f"tests/test_{name}.py").write_text(tests, encoding="utf-8")


@pytest.mark.slow
def test_each_kernel_is_tested_and_the_worst_exit_code_is_the_end(test, tmp_path):
    kernel(tmp_path, "good", tests="import good\n\ndef test_it():\n    assert 'builder-test-' in good.__file__\n")
    kernel(tmp_path, "wrong", tests="def test_it():\n    assert False\n")
    kernel(tmp_path, "untested")
    kernel(tmp_path, "elsewhere", "cuda", tests="def test_it():\n    pass\n")
    done = test("kernels/*", "--", "-q")
    assert done.returncode == 1, done.stderr
    assert "note: left out, no tests: untested" in done.stderr
    assert any(line.startswith("note: left out") and "elsewhere" in line for line in done.stderr.splitlines())
    assert done.stderr.splitlines()[-3:] == ["kernel  tests", "good    passed", "wrong   FAILED"]
    assert "1 passed" in done.stdout


def test_a_kernel_that_cannot_be_read_fails_the_end_and_the_others_are_tested(test, tmp_path):
    kernel(tmp_path, "good", tests="def test_it():\n    pass\n")
    kernel(tmp_path, "bad")
    (tmp_path / "kernels/bad/build.toml").write_text("[general", encoding="utf-8")
    done = test("kernels/*")
    assert done.returncode == 2
    assert "kernels/bad/build.toml" in done.stderr
    assert done.stderr.splitlines()[-2:] == ["kernels/bad  refused", "good         passed"]


def test_nothing_to_test_is_its_own_exit_code(test, tmp_path):
    kernel(tmp_path, "untested")
    done = test("kernels/*")
    assert done.returncode == 3
    assert "no kernel has anything to test here\n  left out, no tests: untested" in done.stderr
