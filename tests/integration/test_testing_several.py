"""`builder test` of several kernels, with the torch that is installed."""

import functools

import pytest

from tests.cli.folders import write
from tests.given import processes
from tests.given.files import write as write_files

pytestmark = [pytest.mark.torch]


@pytest.fixture
def test(tmp_path):
    return functools.partial(processes.builder, "test", store=tmp_path / "store", cwd=tmp_path)


@pytest.fixture
def kernel(tmp_path):
    """Write a kernel with tests, if there are any."""

    def written(name, *backends, tests=""):
        folder = write(tmp_path / "kernels", name, *backends)
        if tests:
            write_files(folder, {f"tests/test_{name}.py": tests})

    return written


@pytest.mark.slow
def test_each_kernel_is_tested_and_the_worst_exit_code_is_the_end(test, kernel):
    kernel("good", tests="import good\n\ndef test_it():\n    assert 'builder-test-' in good.__file__\n")
    kernel("wrong", tests="def test_it():\n    assert False\n")
    kernel("untested")
    kernel("elsewhere", "cuda", tests="def test_it():\n    pass\n")
    done = test("kernels/*", "--", "-q")
    assert done.returncode == 1, done.stderr
    assert "note: left out, no tests: untested" in done.stderr
    assert any(line.startswith("note: left out") and "elsewhere" in line for line in done.stderr.splitlines())
    assert done.stderr.splitlines()[-3:] == ["kernel  tests", "good    passed", "wrong   FAILED"]
    assert "1 passed" in done.stdout


def test_a_kernel_that_cannot_be_read_fails_the_end_and_the_others_are_tested(test, kernel, tmp_path):
    kernel("good", tests="def test_it():\n    pass\n")
    kernel("bad")
    (tmp_path / "kernels/bad/build.toml").write_text("[general", encoding="utf-8")
    done = test("kernels/*")
    assert done.returncode == 2
    assert "kernels/bad/build.toml" in done.stderr
    assert done.stderr.splitlines()[-2:] == ["kernels/bad  refused", "good         passed"]


def test_nothing_to_test_is_its_own_exit_code(test, kernel):
    kernel("untested")
    done = test("kernels/*")
    assert done.returncode == 3
    assert "no kernel has anything to test here\n  left out, no tests: untested" in done.stderr
