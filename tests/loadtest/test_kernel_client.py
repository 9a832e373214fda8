"""What gives a kernel those that it depends on: as the hub's client does, with it and without."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from builder import kernel as kernels
from builder import loadtest
from builder.loadtest.load_outcome import LoadState
from builder.loadtest.packages import KernelFolder, LoadTestPackages
from tests import hub_folder
from tests.cli.folders import write
from tests.given.cells import cell_of

CLIENT = Path(loadtest.__file__).with_name("kernel_client.py")
WITHOUT, WITH = ("-I", "-S"), ("-I",)
"""Without site packages there is no client; the tests' own Python has it."""


def variant(folder, init, *, name="base"):
    """Write a variant of a kernel, and return its folder."""
    files = hub_folder.kernel(name, init=init)
    place = folder / name
    place.mkdir(parents=True)
    for path, text in files.items():
        if path.startswith("build/"):
            (place / Path(path).name).write_text(text)
    return place


def told(tmp_path, tree, code, *, python):
    """Return what a process says that gives kernels, and then runs code."""
    (tmp_path / "kernel_client.py").write_text(CLIENT.read_text())
    (tmp_path / "kernel_client.json").write_text(json.dumps(tree))
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernel_client\n{code}"
    done = subprocess.run([sys.executable, *python, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("python", [WITHOUT, WITH], ids=["stand-in", "client"])
def test_a_kernel_gets_those_that_it_depends_on_and_these_get_theirs(tmp_path, python):
    deep = variant(tmp_path, "X = 7\n", name="deep")
    base = variant(tmp_path, "import kernels\nANSWER = kernels.get_kernel_dep('team/deep').X * 6\n")
    inner = {"team/deep": {"folder": str(deep), "depends": {}}}
    tree = {"team/base": {"folder": str(base), "depends": inner}, "other/base": {"folder": str(base), "depends": inner}}
    code = "import kernels; found = kernels.get_kernel_dep('team/base'); print(found.ANSWER, found.__name__)"
    assert told(tmp_path, tree, code, python=python) == "42 _base_torch_cpu"
    undeclared = told(tmp_path, tree, "import kernels; kernels.get_kernel_dep('team/deep')", python=python)
    assert undeclared.startswith("RuntimeError: ")
    assert "team/deep" in undeclared


@pytest.mark.parametrize("python", [WITHOUT, WITH], ids=["stand-in", "client"])
def test_a_kernel_that_is_not_at_hand_is_a_missing_module_and_one_of_a_wheel_is_imported(tmp_path, python):
    (tmp_path / "of_wheel.py").write_text("ANSWER = 3\n")
    tree = {"team/far-away": None, "team/of-wheel": {"module": "of_wheel"}}
    code = "import kernels; print(kernels.get_kernel_dep('team/of-wheel').ANSWER)"
    assert told(tmp_path, tree, code, python=python) == "3"
    absent = "import kernels\ntry: kernels.get_kernel_dep('team/far-away')\nexcept ImportError as e: print(e.name)"
    assert told(tmp_path, tree, absent, python=python) == "far_away"


def test_what_the_stand_in_has_not_is_a_missing_client(tmp_path):
    code = "try: from kernels import get_kernel\nexcept ModuleNotFoundError as e: print(e.name)"
    assert told(tmp_path, {"a/b": None}, code, python=WITHOUT) == "kernels"


@pytest.fixture
def judged(tmp_path):
    """Return what becomes of a kernel whose package depends on `team/base`."""

    def load(init, base, *, python_depends=()):
        folder = write(tmp_path, "user")
        (folder / "torch-ext/user/__init__.py").write_text(init)
        loaded = kernels.load(hub_folder.depend(folder, "team/base"))
        cell = cell_of(loaded.config, sets=("release",), system="x86_64-linux")
        place = variant(tmp_path / "kernels", base)
        locked = KernelFolder(repo_id="team/base", commit="a" * 40, folder=place, python_depends=python_depends)
        has = loadtest.packages.found(loaded, cell, wheels=(), locked=(locked,), why="is not pinned")
        package = folder / "torch-ext/user"
        return loadtest.load(
            loadtest.Setup(package=package, cell=cell, python=Path(sys.executable), packages=has), ops="ops"
        )

    return load


USES = "from kernels import get_kernel_dep\nassert get_kernel_dep('team/base').ANSWER == 42\n"


def test_a_load_test_has_the_locked_kernels_and_names_them(judged):
    found = judged(USES, "ANSWER = 42\n")
    assert found.outcome is LoadState.LOADED
    assert "team/base aaaaaaa" in found.packages


def test_a_locked_kernel_that_raises_is_named(judged):
    found = judged(USES, "raise ValueError('no luck')\n")
    assert found.outcome is LoadState.BROKEN
    assert "the kernel 'team/base' that it depends on cannot be loaded: ValueError: no luck" in found.reason


def test_a_package_that_only_a_locked_kernel_needs_is_no_fault_of_this_one(judged):
    found = judged(USES, "import nki\n", python_depends=("nki",))
    assert found.outcome is LoadState.NOT_TESTED
    assert "'nki' is needed by the kernel 'team/base' alone" in found.reason


def test_a_process_that_needs_no_kernels_is_told_of_none():
    assert LoadTestPackages().kernel_tree == {}
