"""Entries in a folder: whole or absent, known by their digest, and within their size."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.compile_cache.folder import CacheError, DamagedError, Entry, Folder

KEY = "ab" * 20


@pytest.fixture
def folder(tmp_path):
    return Folder(root=tmp_path / "compiled")


def path_of(folder, key=KEY):
    return folder.root / key[0] / key


@given(st.binary(), st.floats(0, 1e6), st.text())
def test_an_entry_is_read_as_it_was_written(value, seconds, writer):
    entry = Entry(value=value, seconds=round(seconds, 3), writer=writer)
    assert Entry.from_bytes(entry.to_bytes(KEY), KEY) == entry


@given(st.binary(max_size=200))
def test_bytes_that_are_no_entry_are_refused(content):
    with pytest.raises(DamagedError):
        Entry.from_bytes(content, KEY)


@pytest.mark.parametrize("at", [0, 20, -1])
def test_one_changed_byte_is_noticed(at):
    content = bytearray(Entry(value=b"object", writer="me").to_bytes(KEY))
    content[at] ^= 1
    with pytest.raises(DamagedError):
        Entry.from_bytes(bytes(content), KEY)


def test_what_was_put_is_there_and_counts_as_used(folder):
    folder.put(KEY, Entry(value=b"object", seconds=2.5, writer="me"))
    os.utime(path_of(folder), (1, 1))
    assert folder.get(KEY) == Entry(value=b"object", seconds=2.5, writer="me")
    assert path_of(folder).stat().st_mtime > 1
    assert folder.get("cd" * 20) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"garbage\nmore", b"\xff" * 9000])
def test_a_damaged_entry_is_none_and_is_taken_out(folder, content):
    folder.put(KEY, Entry(value=b"object"))
    path_of(folder).write_bytes(content)
    assert folder.get(KEY) is None
    assert not path_of(folder).exists()


def test_an_entry_in_the_place_of_another_one_is_damaged(folder):
    folder.put(KEY, Entry(value=b"object"))
    other = "a" + "c" * 39
    path_of(folder).rename(path_of(folder, other))
    assert folder.get(other) is None


def test_a_folder_in_the_place_of_an_entry_is_none(folder):
    path_of(folder).mkdir(parents=True)
    assert folder.get(KEY) is None


def test_a_file_of_a_stranger_is_not_used_and_stays(folder):
    folder.put(KEY, Entry(value=b"object"))
    guarded = Folder(root=folder.root, distrusts=lambda path: f"{path} is another user's")
    assert guarded.get(KEY) is None
    assert folder.get(KEY) is not None


def test_a_folder_that_cannot_be_written_says_why_and_leaves_nothing(folder):
    folder.root.parent.mkdir(exist_ok=True)
    folder.root.write_text("a file in its place")
    with pytest.raises(CacheError, match="cannot be written: Not a directory"):
        folder.put(KEY, Entry(value=b"object"))


def test_many_writers_of_one_key_leave_a_whole_entry(folder):
    entries = [Entry(value=bytes([number]) * 100_000) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda entry: folder.put(KEY, entry), entries))
    assert folder.get(KEY) in entries
    assert [path.name for path in path_of(folder).parent.iterdir()] == [KEY]


def test_the_least_recently_used_go_first(folder):
    keys = [f"a{number:039x}" for number in range(10)]
    for age, key in enumerate(keys):
        folder.put(key, Entry(value=b"x" * 10_000))
        os.utime(path_of(folder, key), (1_000 - age, 1_000 - age))
    Folder(root=folder.root, limit=16 * 60_000).trim()
    left = [key for key in keys if path_of(folder, key).exists()]
    assert left == keys[: len(left)]
    assert 3 <= len(left) <= 5


def test_within_its_size_nothing_goes_and_without_a_limit_neither(folder):
    folder.put(KEY, Entry(value=b"x" * 10_000))
    Folder(root=folder.root, limit=16 * 60_000).trim()
    folder.trim()
    assert folder.get(KEY) is not None


def test_halves_of_dead_writers_are_removed_and_those_of_living_ones_stay(folder):
    folder.put(KEY, Entry(value=b"object"))
    dead, living = (path_of(folder).with_name(f".{KEY}.{number}-1.part") for number in (1, 2))
    for path in (dead, living):
        path.write_bytes(b"half")
    os.utime(dead, (1, 1))
    Folder(root=folder.root, limit=16 * 60_000).trim()
    assert not dead.exists()
    assert living.exists()


def test_verifying_counts_and_takes_out_what_is_damaged(folder):
    folder.put(KEY, Entry(value=b"object"))
    folder.put("cd" * 20, Entry(value=b"another"))
    path_of(folder).write_bytes(b"garbage")
    os.utime(path_of(folder, "cd" * 20), (7, 7))
    assert folder.verify() == (2, 1)
    assert folder.verify() == (1, 0)
    assert path_of(folder, "cd" * 20).stat().st_mtime == 7  # looking is not using


def test_a_folder_that_is_not_there_or_not_open_is_told(tmp_path):
    with pytest.raises(CacheError, match="is not there"):
        Folder(root=tmp_path / "none").check(write=False)
    Folder(root=tmp_path).check(write=True)
