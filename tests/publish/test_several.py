"""`builder index` and `builder bundle` for wheels of several kernels."""

import shutil

import pytest

from builder.cli import run
from builder.matrix.variant import Variant
from tests.cli.folders import write
from tests.wheels import make

CPU = Variant.parse("torch-cpu")


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make(tmp_path / name, f"kernel-{name}", CPU)
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("names", [("one", "two"), ("*",), ("one", "*", "./one")])
def test_an_index_has_the_wheels_of_every_folder(wheels, names):
    assert run(["index", *names]) == 0
    assert {path.name for path in (wheels / "site" / "simple").iterdir() if path.is_dir()} == {
        "kernel-one",
        "kernel-two",
    }


@pytest.mark.parametrize(
    ("names", "said"),
    [
        pytest.param(("one", "empty"), "'empty' has no wheels", id="a folder without wheels that is named"),
        pytest.param(("one", "nowhere"), "'nowhere' is not a directory", id="no folder"),
        pytest.param(("x*",), "'x*' picks no folder with a wheel", id="a pattern that picks none"),
    ],
)
@pytest.mark.usefixtures("wheels")
def test_each_folder_that_is_named_must_have_wheels(names, said, capsys):
    assert run(["index", *names]) == 3
    assert said in capsys.readouterr().err


def test_one_wheel_in_two_folders_is_one_and_must_be_the_same(wheels, capsys):
    (wheels / "copy").mkdir()
    (path,) = (wheels / "one").glob("*.whl")
    shutil.copy(path, wheels / "copy")
    assert run(["index", "one", "copy"]) == 0
    make(wheels / "copy", "kernel-one", CPU, content="answer = 43\n")
    assert run(["index", "one", "copy", "--output", "other"]) == 2
    assert "have one name and different content" in capsys.readouterr().err


def test_a_layout_of_several_kernels_has_a_folder_for_each(wheels, capsys):
    for name in ("one", "two", "three"):
        folder = write(wheels / "kernels", f"kernel-{name}")
        (folder / "CARD.md").write_text(f"# card of {name}\n", encoding="utf-8")
    paths = sorted(str(path) for path in wheels.glob("*/*.whl"))
    assert run(["bundle", *paths, "--kernel", "kernels/*", "--output", "hub"]) == 0
    assert sorted(path.name for path in (wheels / "hub").iterdir()) == ["kernel-one", "kernel-two"]
    assert (wheels / "hub/kernel-two/build/torch-cpu/metadata.json").is_file()
    assert "card of one" in (wheels / "hub/kernel-one/build/CARD.md").read_text(encoding="utf-8")
    shutil.rmtree(wheels / "kernels/kernel-two")
    assert run(["bundle", *paths, "--kernel", "kernels/*", "--output", "hub"]) == 2
    assert "is of 'kernel-two', and 'kernels/*' has no such kernel" in capsys.readouterr().err
    assert run(["bundle", *paths, "--kernel", "kernels/*", "--repo-id", "a/b"]) == 2
    assert "--repo-id is the repository of one kernel" in capsys.readouterr().err
