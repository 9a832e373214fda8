"""What dead processes left, and a store that this process cannot write."""

import errno
import fcntl
import os
import tempfile
import time
from pathlib import Path

import pytest

from builder.store import Store, StoreError
from tests.given.calls import failing

KEY = "a" * 64
HOUR = 3600


@pytest.mark.parametrize("folder", ["last", "notes"])
@pytest.mark.parametrize(("age", "stays"), [(0, True), (HOUR, True), (HOUR + 1, False)])
def test_the_half_of_a_small_file_is_left_of_a_dead_process_after_an_hour(store, monkeypatch, folder, age, stays):
    half = store.root / folder / ".n.json.x.part"
    whole = store.root / folder / "n.json"
    for path in (half, whole):
        path.touch()
        os.utime(path, (1_000_000, 1_000_000))
    monkeypatch.setattr(time, "time", lambda: 1_000_000 + age)
    store.prepare()
    assert half.exists() is stays
    assert whole.exists()


def test_a_name_that_begins_with_a_dot_is_no_entry(store):
    wheel = ("relu-1.0.0-py3-none-any.whl", b"content")
    store.put(KEY, wheel, record={}, report={})
    store.put(f".{KEY}", wheel, record={}, report={})
    assert [found.key for found in store.entries()] == [KEY]


MAY_NOT = [
    pytest.param(errno.EROFS, id="a read-only file system"),
    pytest.param(errno.EACCES, id="no permission"),
    pytest.param(errno.EPERM, id="a file that is sealed"),
]


@pytest.mark.parametrize("code", MAY_NOT)
def test_a_store_that_may_only_be_read_is_read(store, monkeypatch, code):
    monkeypatch.setattr(tempfile, "TemporaryFile", failing(code))
    assert store.prepare() is False


@pytest.mark.parametrize("code", MAY_NOT)
def test_a_place_that_may_not_be_written_and_has_no_store_is_refused(tmp_path, monkeypatch, code):
    store = Store(tmp_path)
    monkeypatch.setattr(Path, "mkdir", failing(code))
    with pytest.raises(StoreError, match="cannot make a store"):
        store.prepare()


def test_a_store_without_room_is_refused_though_it_could_be_read(store, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", failing(errno.ENOSPC))
    with pytest.raises(StoreError, match="No space left"):
        store.prepare()


@pytest.mark.parametrize("code", MAY_NOT)
def test_a_scratch_directory_is_elsewhere_where_the_store_may_only_be_read(store, monkeypatch, code):
    monkeypatch.setattr(tempfile, "mkstemp", failing(code))
    with store.scratch() as folder:
        assert folder.is_dir()
        assert store.root not in folder.parents
    assert not folder.exists()


def test_a_scratch_directory_is_not_made_elsewhere_for_lack_of_room(store, monkeypatch):
    monkeypatch.setattr(tempfile, "mkstemp", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"), store.scratch():
        pass


@pytest.mark.parametrize("code", MAY_NOT)
def test_a_lock_that_may_only_be_read_is_held_all_the_same(store, monkeypatch, code):
    with store.lock("key"):
        pass
    real = os.open

    def only_for_reading(path, flags, *mode, **options):
        if flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(code, os.strerror(code))
        return real(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", only_for_reading)
    with store.lock("key") as held, store.lock("key", wait=False) as again:
        assert (held, again) == (True, False)


def test_a_lock_that_cannot_be_opened_for_another_reason_is_said(store, monkeypatch):
    monkeypatch.setattr(os, "open", failing(errno.EMFILE))
    with pytest.raises(OSError, match="Too many open files"), store.lock("key"):
        pass


def test_a_lock_may_be_taken_by_every_user_whatever_the_umask(store):
    before = os.umask(0o077)
    try:
        with store.lock("key"):
            assert (store.root / "locks" / "key").stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)


def test_no_lock_outlives_its_use(store):
    with store.lock("key"):
        pass
    descriptor = os.open(store.root / "locks" / "key", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
