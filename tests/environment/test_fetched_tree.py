import threading
import time

import pytest

from builder.environment.download import Fetching
from builder.errors import ToolError
from builder.store import Store, StoreError
from tests.given.calls import noting, raising


@pytest.fixture
def store(tmp_path):
    """A store that is not there yet."""
    return Store(tmp_path / "store")


@pytest.fixture
def get(store):
    """Return the folder of a tree, which is right where its file has a word."""

    def tree(fetch, is_right=lambda folder: (folder / "file").read_text() == "right"):
        fetching = Fetching(store=store, environ={}, progress=lambda _: None)
        return fetching.tree("trees", "name", called="the tree", is_right=is_right, fetch=fetch)

    return tree


def fetch(scratch):
    fresh = scratch / "fresh"
    fresh.mkdir()
    (fresh / "file").write_text("right")
    return fresh


never = raising(AssertionError("fetched again"))


def test_a_tree_is_fetched_once_and_again_where_it_is_damaged(get):
    folder = get(fetch)
    assert get(never) == folder
    (folder / "file").write_text("wrong")
    (folder / "more").touch()
    assert [path.name for path in get(fetch).iterdir()] == ["file"]
    assert get(never) == folder


@pytest.mark.parametrize("error", [ToolError("a pipe"), OSError(5, "I/O error"), ValueError("no JSON")], ids=repr)
def test_what_cannot_be_verified_is_fetched_again(get, error):
    get(fetch)
    asked = []
    get(noting(fetch, asked), is_right=raising(error))
    assert asked


def test_of_two_that_ask_at_once_one_fetches(get):
    fetched = []
    slow = noting(lambda scratch: time.sleep(0.2) or fetch(scratch), fetched)
    threads = [threading.Thread(target=get, args=(slow,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 1


def test_a_tree_that_anybody_may_change_is_not_used(get):
    folder = get(fetch)
    folder.chmod(0o777)
    with pytest.raises(StoreError, match=r"the tree at .* not used, since anybody may write into it"):
        get(never)


def test_a_fetch_that_fails_leaves_nothing_and_a_full_disk_is_told(store, get):
    full = raising(OSError(28, "No space left on device"))
    with pytest.raises(StoreError, match=r"cannot keep the tree in .*: No space left on device"):
        get(lambda scratch: full(fetch(scratch)))
    assert list((store.root / "trees").iterdir()) == []
    assert list((store.root / "scratch").iterdir()) == []
    get(fetch)


def test_members_of_a_shared_store_may_replace_a_tree(store, get):
    store.root.mkdir()
    store.root.chmod(0o2775)
    assert get(fetch).stat().st_mode & 0o777 == 0o775
