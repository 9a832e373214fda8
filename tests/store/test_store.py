import errno
import os

import pytest

from builder.store import Damaged, Store, StoredWheel, StoreError
from tests.given.calls import failing

KEY = "a" * 64
WHEEL = ("relu-1.0.0-py3-none-any.whl", b"content of a wheel")


def put(store, *, key=KEY, wheel=WHEEL):
    return store.put(key, wheel, record={"variant": "v"}, report={"seconds": 1})


def test_an_entry_comes_back_as_it_was_put(store):
    put(store)
    found = store.find(KEY)
    assert isinstance(found, StoredWheel)
    assert found.wheel.read_bytes() == WHEEL[1]
    assert found.record == {"variant": "v"}


def test_a_store_is_made_with_the_folders_above_it(tmp_path):
    store = Store(tmp_path / "a" / "b" / "store")
    assert store.prepare()
    assert isinstance(put(store), StoredWheel)


def test_an_absent_entry_is_none(store):
    assert store.find(KEY) is None


def test_a_flipped_bit_is_found(store):
    path = put(store).wheel
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    found = store.find(KEY)
    assert isinstance(found, Damaged)
    assert "not the one that was stored" in found.why


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '{"wheel": "x"}', "null"], ids=repr)
def test_a_damaged_record_is_found(store, content):
    (put(store).wheel.parent / "entry.json").write_text(content)
    assert isinstance(store.find(KEY), Damaged)


@pytest.mark.parametrize(("more", "why"), [(0, None), (1, "larger than any that was stored")])
def test_a_record_that_is_larger_than_any_is_damaged(store, monkeypatch, more, why):
    record = put(store).wheel.parent / "entry.json"
    monkeypatch.setattr("builder.store._LARGEST", 1000)
    record.write_bytes(record.read_bytes().ljust(1000 + more))
    found = store.find(KEY)
    assert isinstance(found, StoredWheel) if why is None else why in found.why


def test_an_entry_without_its_wheel_is_damaged(store):
    put(store).wheel.unlink()
    assert isinstance(store.find(KEY), Damaged)


def test_a_damaged_entry_is_replaced(store):
    put(store).wheel.write_bytes(b"junk")
    put(store)
    assert isinstance(store.find(KEY), StoredWheel)


def test_a_put_that_fails_leaves_nothing(store, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        put(store)
    assert list((store.root / "wheels").iterdir()) == []
    assert store.find(KEY) is None


def test_the_scratch_directory_of_a_dead_process_is_dropped(store):
    child = os.fork()
    if child == 0:
        with store.scratch():
            os._exit(1)
    os.waitpid(child, 0)
    assert list((store.root / "scratch").iterdir())
    store.prepare()
    assert list((store.root / "scratch").iterdir()) == []


def test_the_scratch_directory_of_a_living_process_stays(store):
    with store.scratch() as folder:
        (folder / "file").touch()
        Store(store.root).prepare()
        assert (folder / "file").exists()
    assert not folder.exists()


def test_a_lock_is_held_once(store):
    with store.lock("key") as first, store.lock("key", wait=False) as second:
        assert (first, second) == (True, False)
    with store.lock("key", wait=False) as again:
        assert again


def test_a_store_that_cannot_be_made_says_where(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot make a store at '.*file/store'"):
        Store(tmp_path / "file" / "store").prepare()


def test_the_digest_of_a_tool_follows_its_content(store, tmp_path):
    tool = tmp_path / "tool"
    tool.write_bytes(b"one")
    first = store.digest(tool)
    assert store.digest(tool) == first
    tool.write_bytes(b"two!")
    assert store.digest(tool) != first


def test_the_last_record_of_a_cell_is_remembered(store):
    assert store.last("relu", "v") is None
    store.set_last("relu", "v", key=KEY, record={"builder": "1"})
    assert store.last("relu", "v") == {"builder": "1"}


def test_a_note_comes_back(store):
    store.set_note("n", {"a": 1})
    assert store.note("n") == {"a": 1}


@pytest.mark.parametrize(
    "content", ["", "null", "{}", '{"value": {"a": 2}, "sha256": "0"}', '{"value": [], "sha256": ""}'], ids=repr
)
def test_a_damaged_note_is_forgotten(store, content):
    (store.root / "notes" / "n.json").write_text(content)
    assert store.note("n") is None


def test_the_digest_of_a_tool_that_has_just_changed_is_not_remembered(store, tmp_path):
    tool = tmp_path / "tool"
    tool.write_bytes(b"one")
    store.digest(tool)
    assert list((store.root / "notes").iterdir()) == []


def test_what_a_killed_put_left_is_removed_when_its_lock_is_free(store):
    left = store.root / "wheels" / f".{KEY}-x"
    left.mkdir()
    with store.lock(KEY):
        Store(store.root).prepare()
        assert left.exists()
    store.prepare()
    assert not left.exists()


def test_a_file_that_is_in_the_way_of_a_scratch_directory_is_no_trouble(store):
    (store.root / "scratch" / "junk").touch()
    store.prepare()
    with store.scratch() as folder:
        assert folder.is_dir()
