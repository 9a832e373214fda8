"""Processes that use one store and are killed with SIGKILL at random moments."""

import hashlib
import os
import random
import signal
import time

import pytest

from builder.store import Damaged, Store, StoredWheel
from tests.given.kills import before_each_change

KEYS = tuple(hashlib.sha256(bytes([n])).hexdigest() for n in range(3))
ROUNDS = 50

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")]


def content(key):
    """Return what `key` stands for: large enough to be written in several steps."""
    return hashlib.shake_256(key.encode()).digest(1 << 20)


def use(root, key, what):
    """Do once what builds and cleaners do."""
    store = Store(root)
    store.prepare()
    with store.scratch() as folder, store.lock(key):
        (folder / "file").write_bytes(content(key))
        store.set_note("n", {"key": key})
        store.set_last("kernel", "v", key=key, record={"key": key})
        match what:
            case "remove":
                store.remove(key)
            case "damage":
                for path in (store.root / "wheels" / key).glob("*.whl"):
                    path.write_bytes(b"damaged")
            case "put":
                store.put(key, ("a-1-py3-none-any.whl", content(key)), record={"key": key}, report={})


def time_of_a_put(store):
    began = time.monotonic()
    for key in KEYS:
        with store.lock(key):
            store.put(key, ("a-1-py3-none-any.whl", content(key)), record={"key": key}, report={})
    return (time.monotonic() - began) / len(KEYS)


def start(root, seed):
    child = os.fork()
    if child == 0:
        dice = random.Random(seed)
        try:
            while True:
                use(root, dice.choice(KEYS), dice.choice(("remove", "damage", "put", "put")))
        finally:
            os._exit(1)
    return child


def found_whole(store):
    """Return how many wheels the store has; each is complete, or known to be damaged."""
    whole = 0
    for key in KEYS:
        found = store.find(key)
        if isinstance(found, StoredWheel):
            whole += 1
            assert found.wheel.read_bytes() == content(key)
            assert found.record == {"key": key}
        else:
            assert found is None or "not the one that was stored" in found.why
    assert store.last("kernel", "v") is None or store.last("kernel", "v")["key"] in KEYS
    return whole


def assert_cleans_itself(store):
    store.prepare()
    assert [path for path in (store.root / "wheels").iterdir() if path.name.startswith(".")] == []
    assert list((store.root / "scratch").iterdir()) == []
    for key in KEYS:
        with store.lock(key, wait=False) as held:
            assert held
            store.put(key, ("a-1-py3-none-any.whl", content(key)), record={}, report={})
        assert not isinstance(store.find(key), Damaged)


@pytest.mark.parametrize("what", ["remove", "damage", "put"])
def test_a_kill_before_any_change_leaves_what_is_complete_or_absent_and_is_cleaned(store, what):
    for key in KEYS:
        use(store.root, key, "put")
    changes = 0
    for _ in before_each_change(lambda: use(store.root, KEYS[0], what)):
        changes += 1
        assert found_whole(store) >= len(KEYS) - 1
    assert changes > 5, "it hardly changes anything: this test shows nothing"
    assert_cleans_itself(store)


def test_what_killed_processes_leave_is_complete_or_absent_and_is_cleaned_by_itself(store):
    dice, whole, halves = random.Random(5), 0, 0
    span = 4 * time_of_a_put(store)
    for turn in range(ROUNDS):
        children = [start(store.root, turn * 2 + n) for n in range(2)]
        time.sleep(dice.uniform(0, span))
        for child in children:
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended by itself: the store failed"
        whole += found_whole(store)
        halves += len([path for path in (store.root / "wheels").iterdir() if path.name.startswith(".")])
    assert whole > ROUNDS // 4, "the processes came to nothing: this test shows nothing"
    assert halves > 0, "no process was hit at work: this test shows nothing"
    assert_cleans_itself(store)
