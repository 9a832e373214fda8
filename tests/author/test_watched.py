"""The saves that `builder watch` notices, and those that it ignores."""

import os
import shutil
import sys
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
import watchfiles

from builder.author import watched
from builder.author.watched import Snapshot
from builder.errors import ToolError
from tests.given.files import write

CONFIG = """
[general]
name = "tiny"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]
[torch]
src = ["torch-ext/torch_binding.cpp"]
[kernel.tiny]
backend = "cpu"
depends = []
include = ["headers"]
src = ["csrc/**/*.cpp"]
"""
FILES = ("csrc/a.cpp", "headers/a.h", "tests/test_a.py", "torch-ext/torch_binding.cpp", "torch-ext/tiny/__init__.py")


@pytest.fixture
def kernel(tmp_path):
    return write(tmp_path / "kernel", {**dict.fromkeys(FILES, ""), "build.toml": CONFIG})


SAVED = "// saved\n"


def save_as_editors_do(path):
    """Write a file beside another and put it in its place."""
    (path.parent / "4913").write_text("")
    (path.parent / "4913").unlink()
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(path.read_text())
    os.utime(beside, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    beside.replace(path)


@pytest.mark.parametrize("name", [*FILES, "build.toml"])
@pytest.mark.parametrize("how", [lambda path: path.write_text(path.read_text() + "\n"), save_as_editors_do, Path.touch])
def test_a_save_of_what_is_built_or_tested_is_noticed(kernel, name, how):
    before = Snapshot.of(kernel)
    how(kernel / name)
    assert not before.holds()
    assert Snapshot.of(kernel, before).changes(before) == (name,)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("csrc/deeper/still/b.cpp", id="a source that a glob finds"),
        pytest.param("headers/b.h", id="a header"),
        pytest.param("torch-ext/tiny/layers.py", id="a module"),
        pytest.param("tests/data/input.json", id="what a test reads"),
        pytest.param("pytest.ini", id="settings of pytest"),
    ],
)
def test_a_new_file_is_noticed_and_so_is_its_end(kernel, name):
    before = Snapshot.of(kernel)
    write(kernel, {name: SAVED})
    assert not before.holds(), "the folder that it is in has changed, too"
    after = Snapshot.of(kernel, before)
    assert after.changes(before) == (name,)
    (kernel / name).unlink()
    assert Snapshot.of(kernel, after).changes(after) == (name,)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("notes.txt", id="a file that nothing reads"),
        pytest.param("dist/tiny.whl", id="what a build wrote"),
        pytest.param("build/tiny/a.h", id="a header that a build wrote"),
        pytest.param("csrc/a.cpp~", id="what an editor leaves beside a source"),
        pytest.param("tests/test_a.py~", id="what an editor leaves beside a test"),
        pytest.param("tests/#test_a.py#", id="what an editor saves by itself"),
        pytest.param("tests/.test_a.py.swp", id="a hidden file"),
        pytest.param("tests/__pycache__/test_a.pyc", id="bytecode"),
        pytest.param(".git/index", id="git"),
        pytest.param("env/lib/site.py", id="an environment"),
    ],
)
def test_what_is_neither_built_nor_tested_is_not_noticed(kernel, name):
    before = Snapshot.of(kernel)
    write(kernel, {name: SAVED})
    assert Snapshot.of(kernel, before).changes(before) == ()


def test_a_new_file_in_a_folder_that_was_empty_is_noticed(kernel):
    (kernel / "csrc/empty").mkdir()
    before = Snapshot.of(kernel)
    write(kernel, {"csrc/empty/b.cpp": SAVED})
    assert not before.holds()
    assert Snapshot.of(kernel, before).changes(before) == ("csrc/empty/b.cpp",)


def test_folders_of_what_is_not_built_are_not_watched(kernel):
    for name in ("env/lib/python/a.py", "dist/a.whl", ".git/objects/a"):
        write(kernel, {name: SAVED})
    names = {folder.relative_to(kernel).as_posix() for folder in Snapshot.of(kernel).folders}
    assert names == {".", "csrc", "headers", "tests", "torch-ext", "torch-ext/tiny"}


def test_a_config_that_cannot_be_read_leaves_the_files_watched_that_there_were(kernel):
    before = Snapshot.of(kernel)
    write(kernel, {"build.toml": "[general\n"})
    broken = Snapshot.of(kernel, before)
    assert broken.problem
    assert broken.changes(before) == ("build.toml",)
    assert broken.files.keys() == before.files.keys()
    write(kernel, {"csrc/a.cpp": SAVED})
    assert Snapshot.of(kernel, broken).changes(broken) == ("csrc/a.cpp",)
    write(kernel, {"build.toml": CONFIG})
    mended = Snapshot.of(kernel, broken)
    assert (mended.problem, mended.changes(broken)) == ("", ("build.toml", "csrc/a.cpp"))


def test_a_file_that_is_no_longer_named_is_not_said_to_be_saved(kernel):
    before = Snapshot.of(kernel)
    write(kernel, {"build.toml": CONFIG.replace('include = ["headers"]\n', "")})
    assert Snapshot.of(kernel, before).changes(before) == ("build.toml",)


def test_a_source_that_was_missing_from_the_start_is_noticed_when_it_is_there(kernel):
    (kernel / "csrc/a.cpp").unlink()
    before = Snapshot.of(kernel)
    assert before.problem
    write(kernel, {"csrc/a.cpp": SAVED})
    assert "csrc/a.cpp" in Snapshot.of(kernel, before).changes(before)


def test_a_folder_that_goes_and_comes_back_is_two_changes(kernel):
    before = Snapshot.of(kernel)
    (kernel / "csrc").rename(kernel / "away")
    gone = Snapshot.of(kernel, before)
    assert gone.changes(before) == ("csrc/a.cpp",)
    (kernel / "away").rename(kernel / "csrc")
    assert Snapshot.of(kernel, gone).changes(gone) == ("csrc/a.cpp",)


def test_a_kernel_whose_folder_is_gone_is_waited_for(kernel, tmp_path):
    before = Snapshot.of(kernel)
    shutil.rmtree(kernel)
    gone = Snapshot.of(kernel, before)
    assert "build.toml" in gone.changes(before)
    assert list(gone.folders) == [tmp_path]


def later(action, seconds=0.3):
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


@pytest.mark.parametrize("step", [0, 1], ids=["one save", "many saves"])
def test_waiting_ends_with_the_save_and_not_before(kernel, step):
    before = Snapshot.of(kernel)
    write(kernel, {"notes.txt": SAVED})
    timers = [later(lambda: write(kernel, {"dist/a.whl": SAVED}), 0.1)]
    names = ("csrc/a.cpp", "headers/a.h", "csrc/new/b.cpp")[: 1 + 2 * step]
    timers += [later(lambda name=name: write(kernel, {name: SAVED})) for name in names]
    after = watched.wait(before)
    assert after.changes(before) == tuple(sorted(names))
    for timer in timers:
        timer.join()


def test_what_was_saved_before_one_waits_is_not_waited_for(kernel):
    before = Snapshot.of(kernel)
    write(kernel, {"csrc/a.cpp": SAVED})
    began = time.monotonic()
    assert watched.wait(before).changes(before) == ("csrc/a.cpp",)
    assert time.monotonic() - began < 30  # what waits for a change has no end


@pytest.mark.parametrize("error", [OSError("no space left"), RuntimeError("too many watches"), FileNotFoundError("x")])
def test_where_the_system_watches_nothing_files_are_looked_at(kernel, monkeypatch, error):
    monkeypatch.setattr(watchfiles, "watch", Mock(side_effect=error))
    monkeypatch.setattr(watched, "_LOOK", 0.05)
    before = Snapshot.of(kernel)
    timer = later(lambda: write(kernel, {"csrc/a.cpp": SAVED}))
    assert watched.wait(before).changes(before) == ("csrc/a.cpp",)
    timer.join()


def test_an_event_that_is_lost_is_made_good_for_by_looking(kernel, monkeypatch):
    def deaf(*_paths, rust_timeout, **_options):
        while True:
            time.sleep(rust_timeout / 1000)
            yield set()

    monkeypatch.setattr(watchfiles, "watch", deaf)
    monkeypatch.setattr(watched, "_LOOK", 0.05)
    before = Snapshot.of(kernel)
    timer = later(lambda: write(kernel, {"headers/new.h": SAVED}))
    assert watched.wait(before).changes(before) == ("headers/new.h",)
    timer.join()


def test_without_the_library_it_says_what_to_install(kernel, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(ToolError, match="watching files needs watchfiles") as refused:
        watched.wait(Snapshot.of(kernel))
    assert refused.value.help == "python -m pip install watchfiles"
