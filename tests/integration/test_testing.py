"""`builder test` on a small real kernel, as its author runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.given.files import write
from tests.given.kernels import linux
from tests.paths import ROOT

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    linux,
]


CALL = """
import plain

def test_scale():
    assert plain.scale([1, 2], 2.5) == [2.5, 5.0]

def test_the_wheel_is_what_is_imported():
    assert "builder-test-" in plain.__file__
"""


OWN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": 1}
"""Half of the time of a small run of pytest is that of plugins."""


@pytest.fixture
def kernel(plain):
    return write(plain, {"tests/test_plain.py": CALL})


@pytest.fixture
def test(kernel, builder):
    """Run the command in the kernel's folder."""

    def run(*arguments, path=()):
        return builder(
            "test", *arguments, cwd=kernel, env={**OWN, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))}
        )

    return run


def test_the_tests_run_against_the_wheel_and_not_the_sources(test):
    done = test("--", "-q")
    assert done.returncode == 0, done.stderr
    assert "2 passed" in done.stdout
    assert "testing plain-1.0.0+ctypes.cpu-" in done.stderr


def test_a_test_that_fails_is_exit_code_1(test, kernel):
    (kernel / "tests/test_plain.py").write_text("def test_wrong():\n    assert 1 == 2\n")
    done = test()
    assert done.returncode == 1
    assert "assert 1 == 2" in done.stdout


def test_what_a_test_prints_is_no_command_of_the_log(test, kernel):
    (kernel / "tests/test_plain.py").write_text(
        "def test_wrong():\n    print('::add-mask::x\\x1b[2J')\n    assert 1 == 2\n"
    )
    done = test("--", "-q")
    assert done.returncode == 1
    assert "add-mask" in done.stdout
    assert "\n::add-mask" not in done.stdout
    assert "\x1b[2J" not in done.stdout


def test_a_test_module_that_cannot_be_imported_has_failed(test, kernel):
    (kernel / "tests/test_plain.py").write_text("import nothing_of_this_name\n")
    assert test().returncode == 1


def test_an_editable_install_that_hides_the_wheel_is_refused(test, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Editable:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        return PathFinder.find_spec(name, [{str(tmp_path / 'elsewhere')!r}]) if name == 'plain' else None\n"
        "sys.meta_path.insert(0, Editable())\n"
    )
    (tmp_path / "elsewhere/plain").mkdir(parents=True)
    (tmp_path / "elsewhere/plain/__init__.py").touch()
    done = test(path=[tmp_path])
    assert done.returncode == 4
    assert f"'plain' would be imported from '{tmp_path / 'elsewhere/plain/__init__.py'}'" in done.stderr


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


@pytest.mark.slow
def test_an_interpreter_without_torch_or_pytest_is_told_what_to_install(builder, tiny, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = tmp_path / "bare/bin/python"
    write(tiny, {"tests/test_tiny.py": "import tiny\n"})
    done = builder("test", "--python", bare, cwd=tiny)
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
    done = builder("test", "--python", bare, cwd=tiny)
    assert done.returncode == 4
    assert f"'{bare}' has no pytest" in done.stderr
