import threading
import time

import pytest

from builder.environment.download import FetchedTree
from builder.errors import ToolError
from builder.run import Processes
from builder.store import Store, StoreError


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def tree(store, *, is_right=lambda folder: (folder / "file").read_text() == "right"):
    return FetchedTree(store=store, section="trees", name="name", called="the tree", is_right=is_right)


def fetch(scratch):
    fresh = scratch / "fresh"
    fresh.mkdir()
    (fresh / "file").write_text("right")
    return fresh


def never(_):
    raise AssertionError("fetched again")


def test_a_tree_is_fetched_once_and_again_where_it_is_damaged(store):
    folder = tree(store).get(fetch, Processes())
    assert tree(store).get(never, Processes()) == folder
    (folder / "file").write_text("wrong")
    (folder / "more").touch()
    assert [path.name for path in tree(store).get(fetch, Processes()).iterdir()] == ["file"]
    assert tree(store).get(never, Processes()) == folder


@pytest.mark.parametrize("error", [ToolError("a pipe"), OSError(5, "I/O error"), ValueError("no JSON")], ids=repr)
def test_what_cannot_be_verified_is_fetched_again(store, error):
    tree(store).get(fetch, Processes())
    asked = []

    def is_right(_):
        raise error

    tree(store, is_right=is_right).get(lambda scratch: asked.append(1) or fetch(scratch), Processes())
    assert asked


def test_of_two_that_ask_at_once_one_fetches(store):
    fetched = []

    def slow(scratch):
        fetched.append(scratch)
        time.sleep(0.2)
        return fetch(scratch)

    threads = [threading.Thread(target=tree(store).get, args=(slow, Processes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 1


def test_a_tree_that_anybody_may_change_is_not_used(store):
    folder = tree(store).get(fetch, Processes())
    folder.chmod(0o777)
    with pytest.raises(StoreError, match=r"the tree at .* not used, since anybody may write into it"):
        tree(store).get(never, Processes())


def test_a_fetch_that_fails_leaves_nothing_and_a_full_disk_is_told(store):
    def full(scratch):
        fetch(scratch)
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=r"cannot keep the tree in .*: No space left on device"):
        tree(store).get(full, Processes())
    assert list((store.root / "trees").iterdir()) == []
    assert list((store.root / "scratch").iterdir()) == []
    tree(store).get(fetch, Processes())


def test_members_of_a_shared_store_may_replace_a_tree(store):
    store.root.mkdir()
    store.root.chmod(0o2775)
    assert tree(store).get(fetch, Processes()).stat().st_mode & 0o777 == 0o775
