"""`builder test` on a small real kernel, as its author runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
CALL = """
import tiny, torch

def test_twice():
    assert tiny.twice(torch.ones(3)).tolist() == [2.0] * 3

def test_the_wheel_is_what_is_imported():
    assert "builder-test-" in tiny.__file__
"""

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="cells of x86_64-linux"),
]


@pytest.fixture
def kernel(tmp_path):
    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    (folder / "tests").mkdir()
    (folder / "tests/test_tiny.py").write_text(CALL)
    return folder


@pytest.fixture
def test(kernel, tmp_path_factory):
    """Run the command in the kernel's folder; its builds share a store."""

    def run(*arguments, path=()):
        store = tmp_path_factory.getbasetemp() / "store-of-tests"
        return subprocess.run(
            [sys.executable, "-m", "builder", "test", *map(str, arguments)],
            env={**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))},
            cwd=kernel,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_tests_run_against_the_wheel_and_not_the_sources(test):
    done = test("--", "-q")
    assert done.returncode == 0, done.stderr
    assert "2 passed" in done.stdout
    assert "testing tiny-1.0.0+torch.stable210.cpu-" in done.stderr


def test_a_test_that_fails_is_exit_code_1(test, kernel):
    (kernel / "tests/test_tiny.py").write_text("def test_wrong():\n    assert 1 == 2\n")
    done = test()
    assert done.returncode == 1
    assert "assert 1 == 2" in done.stdout


def test_what_a_test_prints_is_no_command_of_the_log(test, kernel):
    (kernel / "tests/test_tiny.py").write_text(
        "def test_wrong():\n    print('::add-mask::x\\x1b[2J')\n    assert 1 == 2\n"
    )
    done = test("--", "-q")
    assert done.returncode == 1
    assert "add-mask" in done.stdout
    assert "\n::add-mask" not in done.stdout
    assert "\x1b[2J" not in done.stdout


def test_a_test_module_that_cannot_be_imported_has_failed(test, kernel):
    (kernel / "tests/test_tiny.py").write_text("import nothing_of_this_name\n")
    assert test().returncode == 1


def test_an_editable_install_that_hides_the_wheel_is_refused(test, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Editable:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        return PathFinder.find_spec(name, [{str(tmp_path / 'elsewhere')!r}]) if name == 'tiny' else None\n"
        "sys.meta_path.insert(0, Editable())\n"
    )
    (tmp_path / "elsewhere/tiny").mkdir(parents=True)
    (tmp_path / "elsewhere/tiny/__init__.py").touch()
    done = test(path=[tmp_path])
    assert done.returncode == 4
    assert f"'tiny' would be imported from '{tmp_path / 'elsewhere/tiny/__init__.py'}'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(("--", "-k", "nothing"), 2, "pytest ran no test of 'tests'", id="nothing selected"),
        pytest.param(("--", "--no-such-option"), 4, "pytest ended with 4", id="wrong argument of pytest"),
        pytest.param(("--python", "/nonexistent/python"), 4, "is not a Python that runs", id="no such Python"),
        pytest.param(("--variant", "torch-nowhere"), 3, "no such cell of this kernel", id="unknown variant"),
    ],
)
def test_what_cannot_be_tested_is_said(test, arguments, code, message):
    done = test(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interpreter_without_torch_or_pytest_is_told_what_to_install(test, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = tmp_path / "bare/bin/python"
    done = test("--python", bare)
    assert done.returncode == 4
    assert f"'{bare}' has no torch" in done.stderr
    site = next((tmp_path / "bare/lib").glob("*/site-packages"))
    torch = Path(subprocess.check_output([sys.executable, "-c", "import torch; print(torch.__file__)"], text=True))
    (site / "torch").symlink_to(torch.parent)
    for needed in (
        "typing_extensions.py",
        "sympy",
        "mpmath",
        "filelock",
        "fsspec",
        "jinja2",
        "markupsafe",
        "networkx",
        "torchgen",
    ):
        (site / needed).symlink_to(torch.parent.parent / needed)
    done = test("--python", bare)
    assert done.returncode == 4
    assert f"'{bare}' has no pytest" in done.stderr
