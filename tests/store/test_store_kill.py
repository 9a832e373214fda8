"""Processes that use one store and are killed with SIGKILL at random moments."""

import hashlib
import os
import random
import signal
import time

import pytest

from builder.store import Damaged, Store, StoredWheel

KEYS = tuple(hashlib.sha256(bytes([n])).hexdigest() for n in range(3))
ROUNDS = 200

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")]


def content(key):
    """Return what `key` stands for: large enough to be written in several steps."""
    return hashlib.shake_256(key.encode()).digest(1 << 20)


def use(root, seed):
    """Do what builds and cleaners do, for ever."""
    dice, store = random.Random(seed), Store(root)
    while True:
        store.prepare()
        key = dice.choice(KEYS)
        with store.scratch() as folder, store.lock(key):
            (folder / "file").write_bytes(content(key))
            store.set_note("n", {"key": key})
            store.set_last("kernel", "v", key=key, record={"key": key})
            match dice.randrange(4):
                case 0:
                    store.remove(key)
                case 1:
                    for path in (store.root / "wheels" / key).glob("*.whl"):
                        path.write_bytes(b"damaged")
                case _:
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
        try:
            use(root, seed)
        finally:
            os._exit(1)
    return child


def test_what_killed_processes_leave_is_complete_or_absent_and_is_cleaned_by_itself(store):
    dice, whole, halves = random.Random(5), 0, 0
    span = 4 * time_of_a_put(store)
    for turn in range(ROUNDS):
        children = [start(store.root, turn * 2 + n) for n in range(2)]
        time.sleep(dice.uniform(0, span))
        for child in children:
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended by itself: the store failed"
        for key in KEYS:
            found = store.find(key)
            if isinstance(found, StoredWheel):
                whole += 1
                assert found.wheel.read_bytes() == content(key)
                assert found.record == {"key": key}
            else:
                assert found is None or "not the one that was stored" in found.why
        halves += len([path for path in (store.root / "wheels").iterdir() if path.name.startswith(".")])
        assert store.last("kernel", "v") is None or store.last("kernel", "v")["key"] in KEYS
    assert whole > ROUNDS // 4, "the processes came to nothing: this test shows nothing"
    assert halves > 0, "no process was hit at work: this test shows nothing"
    store.prepare()
    assert [path for path in (store.root / "wheels").iterdir() if path.name.startswith(".")] == []
    assert list((store.root / "scratch").iterdir()) == []
    for key in KEYS:
        with store.lock(key, wait=False) as held:
            assert held
            store.put(key, ("a-1-py3-none-any.whl", content(key)), record={}, report={})
        assert not isinstance(store.find(key), Damaged)
