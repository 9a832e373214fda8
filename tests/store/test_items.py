"""What of a store goes, by age and by size, and what stays."""

import errno
import os
from pathlib import Path

import pytest

from builder.store import Store
from builder.store.items import collect, items, summed
from tests.given.calls import failing

NOW = 2_000_000
BLOCK = 4096


def add(store, folder, name, *, used, marker="entry.json", blocks=1):
    path = store.root / folder / name
    path.mkdir(parents=True)
    (path / marker).write_bytes(b"x" * BLOCK * blocks)
    for each in (path / marker, path):
        os.utime(each, (used, used))


@pytest.fixture
def three(store):
    """Add three items, and return their sizes, the least recently used first."""
    for name, used in (("a", NOW - 30), ("b", NOW - 20), ("c", NOW - 10)):
        add(store, "wheels", name, used=used)
    return [item.size for item in items(store)]


def gone(store, **options):
    return [item.name for item in collect(store, now=NOW, **{"max_age": None, "max_size": None, **options})]


@pytest.mark.usefixtures("three")
def test_what_was_used_longer_ago_than_the_age_goes(store):
    assert gone(store, max_age=20.0) == ["a"]
    assert sorted(path.name for path in (store.root / "wheels").iterdir()) == ["b", "c"]


def test_the_least_recently_used_goes_until_the_rest_fits(store, three):
    assert gone(store, max_size=sum(three)) == []
    assert gone(store, max_size=sum(three) - 1) == ["a"]
    assert gone(store, max_size=0) == ["b", "c"]


@pytest.mark.usefixtures("three")
def test_without_bounds_everything_stays(store):
    assert gone(store) == []


def test_a_trial_run_counts_what_would_go_and_removes_nothing(store, three):
    assert gone(store, max_size=sum(three) - 1, dry_run=True) == ["a"]
    assert [item.name for item in items(store)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("folder", "marker", "lock"),
    [
        ("wheels", "entry.json", "a"),
        ("environments", "pins.json", "environment-a"),
        ("headers", "cutlass.h", "headers-a"),
        ("partial", "src", "a"),
    ],
)
def test_what_is_in_use_stays_until_it_is_free(store, folder, marker, lock):
    add(store, folder, "a", used=NOW - 10, marker=marker)
    with store.use(lock):
        assert gone(store, max_age=1.0) == []
    assert gone(store, max_age=1.0) == ["a"]
    assert list((store.root / folder).iterdir()) == []


def test_what_cannot_be_removed_is_not_said_to_be_gone(store, monkeypatch):
    add(store, "partial", "a", used=NOW - 10)

    monkeypatch.setattr(Path, "rename", failing(errno.EROFS))
    assert gone(store, max_age=1.0) == []


def test_a_log_goes_by_age_as_everything_else(store):
    log = store.log("relu", "v")
    log.write_text("x" * 7)
    os.utime(log, (NOW - 10, NOW - 10))
    (item,) = items(store)
    assert (item.kind, item.size, item.used) == ("log", 7, NOW - 10)
    assert gone(store, max_age=10.0) == []
    assert gone(store, max_age=9.0) == [log.name]
    assert not log.exists()


def test_the_last_use_is_the_newer_of_a_folder_and_its_record(store):
    add(store, "wheels", "a", used=NOW - 10)
    store.touch("a")
    os.utime(store.root / "wheels" / "a" / "entry.json", (NOW - 5, NOW - 5))
    assert [item.used for item in items(store)] == [NOW - 5]
    os.utime(store.root / "wheels" / "a", (NOW - 1, NOW - 1))
    assert [item.used for item in items(store)] == [NOW - 1]


def test_a_folder_without_its_record_is_as_old_as_itself(store):
    add(store, "environments", "a", used=NOW - 10, marker="other")
    assert [item.used for item in items(store)] == [NOW - 10]


def test_a_folder_is_as_large_as_its_files_are_on_the_disk(store):
    add(store, "wheels", "a", used=NOW, blocks=3)
    add(store, "wheels", "b", used=NOW)
    blocks = [os.lstat(store.root / "wheels" / name / "entry.json").st_blocks for name in "ab"]
    assert [item.size for item in items(store)] == [512 * count for count in blocks]  # POSIX: blocks of 512 bytes


def test_what_was_used_at_one_time_goes_by_kind_and_name(store):
    add(store, "wheels", "a", used=NOW)
    add(store, "environments", "z", used=NOW)
    add(store, "environments", "b", used=NOW)
    assert [item.name for item in items(store)] == ["b", "z", "a"]


@pytest.mark.parametrize("folder", ["wheels", "environments", "partial"])
def test_a_name_that_begins_with_a_dot_is_counted_and_removed_by_nobody(store, folder):
    add(store, folder, ".a", used=NOW - 10)
    add(store, folder, "b", used=NOW - 10)
    assert gone(store, max_age=1.0) == ["b"]
    assert (store.root / folder / ".a").is_dir()


def test_a_store_that_was_never_made_holds_nothing(tmp_path):
    store = Store(tmp_path / "absent")
    assert (list(items(store)), list(store.entries())) == ([], [])


@pytest.mark.usefixtures("three")
def test_compiled_files_are_shown_as_one_item_where_the_last_used_one_stands(store):
    for folder, name, used in (("aa", "one", NOW - 40), ("bb", "two", NOW - 20)):
        path = store.root / "compiled" / folder / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 10)
        os.utime(path, (used, used))
    shown = [(item.kind, item.name) for item in summed(items(store))]
    assert shown == [("wheel", "a"), ("compiled", "2 files"), ("wheel", "b"), ("wheel", "c")]
    both = next(item for item in summed(items(store)) if item.kind == "compiled")
    assert (both.size, both.path) == (20, store.root / "compiled")
