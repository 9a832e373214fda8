"""Private directories: whose they are, and when they go."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from builder.store import locks
from tests.given.calls import raising


def test_nothing_is_left_of_a_scratch_directory(tmp_path):
    with locks.scratch(tmp_path) as folder:
        (folder / "file").touch()
        assert [path.name for path in sorted(tmp_path.iterdir())] == [folder.name, f"{folder.name}.lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_directory_is_of_its_user_alone(tmp_path):
    with locks.scratch(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_scratch_directory_that_cannot_be_made_leaves_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", raising(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left"), locks.scratch(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_swept_before_it_is_held_is_made_again(tmp_path, monkeypatch):
    real, taken = fcntl.flock, []

    def swept_at_first(descriptor, how):
        if not taken:
            next(tmp_path.iterdir()).unlink()
        taken.append(how)
        return real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", swept_at_first)
    with locks.scratch(tmp_path) as folder:
        assert folder.with_name(f"{folder.name}.lock").exists()
    assert len(taken) == 2


def test_the_dead_go_among_the_living_and_among_what_is_no_lock(tmp_path):
    living = []
    for number in range(5):
        (tmp_path / f"none{number}.lock").symlink_to("nowhere")
        for kind in ("living", "dead"):
            (tmp_path / f"{kind}{number}").mkdir()
            (tmp_path / f"{kind}{number}.lock").touch()
        living.append(os.open(tmp_path / f"living{number}.lock", os.O_RDWR))
        fcntl.flock(living[-1], fcntl.LOCK_EX)
    locks.sweep(tmp_path)
    assert {path.stem[:-1] for path in tmp_path.iterdir()} == {"living", "none"}
    for descriptor in living:
        os.close(descriptor)
    locks.sweep(tmp_path)
    assert {path.stem[:-1] for path in tmp_path.iterdir()} == {"none"}


def test_what_cannot_be_removed_now_keeps_its_lock_for_the_next_time(tmp_path):
    (tmp_path / "b1").touch()  # a file, which is not removed as a folder
    (tmp_path / "b1.lock").touch()
    locks.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b1", "b1.lock"]


def test_a_scratch_directory_that_is_gone_before_its_end_is_no_trouble(tmp_path):
    with locks.scratch(tmp_path) as folder:
        folder.rmdir()
        folder.with_name(f"{folder.name}.lock").unlink()
    assert list(tmp_path.iterdir()) == []
