"""`builder build` of several kernels, with the torch that is installed, as a user runs it."""

import json
import shutil

import pytest

from tests.cli.folders import write
from tests.integration import compiling
from tests.paths import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.cmake]


def test_the_wheels_of_all_are_in_one_folder_and_a_second_build_is_a_hit(builder, tmp_path):
    for name in ("one", "two"):
        write(tmp_path / "kernels", name)
    first = builder("build", "kernels/*", "--no-isolation", "--report", "report.html")
    assert first.returncode == 0, first.stderr
    wheels = sorted(path.name for path in (tmp_path / "dist").glob("*.whl"))
    assert [name.split("-")[0] for name in wheels] == ["one", "two"]
    assert sorted(line.removeprefix("dist/") for line in first.stdout.splitlines()) == wheels
    assert first.stderr.splitlines()[-3:] == ["kernel  built", "one     1", "two     1"]
    assert "two:torch-cpu" in (tmp_path / "report.html").read_text(encoding="utf-8")
    again = builder("build", "kernels/*", "--no-isolation", "--json")
    found = json.loads(again.stdout)["kernels"]
    assert [(folder, [each["status"] for each in cells]) for folder, cells in found.items()] == [
        ("kernels/one", ["hit"]),
        ("kernels/two", ["hit"]),
    ]


def test_one_that_fails_stops_no_other_and_its_code_is_the_end(builder, tmp_path):
    bad = write(tmp_path / "kernels", "bad")
    (bad / "torch-ext/bad/__init__.py").write_text("raise RuntimeError('not importable')\n", encoding="utf-8")
    write(tmp_path / "kernels", "good")
    done = builder("build", "kernels/*", "--no-isolation", "--json")
    found = json.loads(done.stdout)["kernels"]
    assert {folder: cells[0]["status"] for folder, cells in found.items()} == {
        "kernels/bad": "failed",
        "kernels/good": "built",
    }
    assert done.returncode == 5
    assert "bad:torch-cpu: FAILED" in done.stderr


@pytest.mark.slow
def test_a_kernel_that_needs_another_is_loaded_with_its_new_wheel(builder, tmp_path):
    base = write(tmp_path / "kernels", "z-base")
    (base / "torch-ext/z_base/__init__.py").write_text("ANSWER = 42\n", encoding="utf-8")
    user = write(tmp_path / "kernels", "a-user")
    config = user / "build.toml"
    depends = 'version = 1\nkernel-depends = [{ repo-id = "someone/z-base", version = 1 }]\n'
    config.write_text(config.read_text(encoding="utf-8").replace("version = 1\n", depends, 1), encoding="utf-8")
    text = "import z_base\n\nassert z_base.ANSWER == 42\n"
    (user / "torch-ext/a_user/__init__.py").write_text(text, encoding="utf-8")
    done = builder("build", "kernels/*", "--no-isolation")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_the_compilers_of_all_kernels_and_leaves_nothing(tmp_path):
    for name in ("one", "two"):
        folder = shutil.copytree(ROOT / "tests/data/kernels/tiny", tmp_path / "kernels" / name)
        source = (folder / "csrc/twice.cpp").rename(folder / f"csrc/slowly_{name}.cpp")
        source.write_text(source.read_text() + compiling.SLOW_TO_COMPILE)
        config = folder / "build.toml"
        text = config.read_text().replace("csrc/twice.cpp", f"csrc/slowly_{name}.cpp")
        config.write_text(text.replace('name = "tiny"', f'name = "tiny-{name}"'))
        (folder / "torch-ext/tiny").rename(folder / f"torch-ext/tiny_{name}")
    options = ("--backend", "cpu", "--jobs", "2", "--no-isolation")
    compiling.interrupted("csrc/slowly_", "build", "kernels/*", *options, folder=tmp_path)
