"""The wheel of `builder` itself: complete, and at work outside the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_templates_cmake_and_data(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder, inside in (("templates", "_resources/templates"), ("cmake", "_resources/cmake"), ("builder", "")):
        for path in (ROOT / folder).rglob("*"):
            relative = path.relative_to(ROOT / folder)
            if path.is_file() and "__pycache__" not in relative.parts and path.suffix != ".pyc":
                assert str(Path("builder") / inside / relative) in names
    assert "builder/py.typed" in names


def test_the_installed_wheel_renders_and_plans_outside_the_checkout(wheel, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    kernel = ROOT / "examples/relu"
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it may name a checkout
    command = environment / "bin/builder"
    for arguments in (["--version"], ["check", kernel], ["matrix", kernel], ["render", kernel, "--backend", "cpu"]):
        done = subprocess.run([command, *arguments], cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [sys.executable, "-m", "builder", "render", kernel, "--backend", "cpu"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == listed.stdout
