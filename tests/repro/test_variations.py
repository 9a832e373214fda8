"""What reaches a build when everything is varied at once: no variation may undo another; no compiler is needed."""

import shutil
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder.repro.setting import Circumstances, Preload, Workspace
from builder.repro.variations import VARIATIONS
from tests import needs
from tests.paths import TESTS

TINY = TESTS / "data/kernels/tiny"
OLD = 1_000_000_007
SHM = Path("/dev/shm")

pytestmark = needs.only_with("git")


@pytest.fixture
def varied(tmp_path):
    """A function that applies all variations of a round, as `builder repro` does."""
    (tmp_path / "store/environments").mkdir(parents=True)
    (tmp_path / "store/uv").mkdir()
    workspace = None

    def apply(number):
        nonlocal workspace
        library = Preload(library=tmp_path / "preload.so")
        workspace = Workspace(folder=tmp_path / tmp_path.name / "workspace", preload=library, round=number)
        setting = Circumstances(
            kernel=shutil.copytree(TINY, tmp_path / "kernel"), store=tmp_path / "store", cwd=tmp_path
        )
        for variation in VARIATIONS:
            setting = variation.apply(setting, workspace)
        return setting

    yield apply
    if workspace is not None:
        shutil.rmtree(workspace.elsewhere, ignore_errors=True)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_kernel_that_is_built_has_all_files_with_other_times_and_modes(varied, number):
    kernel = varied(number).kernel
    paths = [path for path in kernel.rglob("*") if ".git" not in path.relative_to(kernel).parts]
    assert {path.relative_to(kernel) for path in paths} == {path.relative_to(TINY) for path in TINY.rglob("*")}
    assert {int(path.stat().st_mtime) for path in paths} == {OLD}
    files = [path for path in paths if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o755 if number % 2 else 0o400}
    assert all(path.read_bytes() == (TINY / path.relative_to(kernel)).read_bytes() for path in files)


def test_the_first_round_is_a_clean_clone_in_a_deep_folder_with_a_space(varied):
    kernel = varied(1).kernel
    assert "a folder with a space" in str(kernel)
    assert len(kernel.parts) > 12
    clean = subprocess.run(["git", "-C", kernel, "-c", "core.fileMode=false", "diff", "--quiet"], check=False)
    assert clean.returncode == 0


def test_the_second_round_is_a_tarball_through_a_link(varied):
    kernel = varied(2).kernel
    assert kernel.is_symlink()
    assert not (kernel / ".git").exists()


@pytest.mark.skipif(not SHM.is_dir(), reason="no other file system that everybody may write to")
def test_the_third_round_is_on_another_file_system(varied):
    assert varied(3).kernel.is_relative_to(SHM)


def test_files_are_made_from_the_last_to_the_first(varied, monkeypatch):
    """The order of creation, which is the order of listing on file systems that keep it."""
    monkeypatch.setattr(shutil, "copy2", Mock(wraps=shutil.copy2))
    kernel = varied(1).kernel
    made = [Path(call.args[1]) for call in shutil.copy2.call_args_list]
    last = [path.relative_to(kernel) for path in made if path.is_relative_to(kernel) and ".git" not in path.parts]
    assert last
    folders = {path.parent for path in last}
    for folder in folders:
        names = [path.name for path in last if path.parent == folder]
        assert names == sorted(names, reverse=True)


@pytest.mark.parametrize(
    ("number", "off"), [(1, False), (2, False), (3, False), (4, True)], ids=["cold", "warm", "shared", "off"]
)
def test_compiled_files_are_kept_where_that_is_varied(varied, number, off):
    """`builder repro` switches it off for the build that others are compared with."""
    setting = varied(number)
    seen = {"CCACHE_DISABLE": "1", **setting.environ}
    assert bool(seen["CCACHE_DISABLE"]) is off
    assert off or (setting.store / "environments").is_symlink()


def test_no_build_sees_what_another_left_in_a_cache_but_that_of_the_first_round(tmp_path):
    (varies,) = (each for each in VARIATIONS if each.name == "cache")

    setting = Circumstances(kernel=TINY, store=tmp_path, cwd=tmp_path)
    rounds = (
        varies.apply(setting, Workspace(folder=tmp_path / "workspace", preload=Preload(), round=number)).store
        for number in (1, 1, 2, 3)
    )
    first = next(rounds)
    for name in ("compiled", "shared"):
        (first / name).mkdir(exist_ok=True)
        (first / name / "object").write_text("of the first round")
    again, warm, shared = rounds
    assert len({first, again, warm, shared}) == 4
    seen = [sorted(path.parent.name for path in folder.glob("*/object")) for folder in (again, warm, shared)]
    assert seen == [[], ["compiled"], ["shared"]]
