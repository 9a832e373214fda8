"""An index that cannot be reached is asked once in a run, whoever needs it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from builder.environment import fetch
from builder.environment.fetch import Reach
from builder.run import Completed
from tests.given.calls import raising

URL = "https://wheels.example/cu132"
GONE = Completed(returncode=2, output="error: Request failed after 3 retries\n  cause: dns error\n", peak=0)
ABSENT = Completed(returncode=1, output="torch was not found in the package registry\n", peak=0)
GOOD = Completed(returncode=0, output="", peak=0)


@pytest.fixture
def runs():
    """Return the runs of uv so far."""
    return []


def ask(shared, runs, answer, index=URL, *, give_up=lambda: False):
    """Have uv asked for an index, where it would give this answer."""
    return shared.ask(index, lambda: runs.append(index) or answer, give_up=give_up)


def test_an_index_out_of_reach_is_asked_once(runs):
    shared = Reach()
    assert [ask(shared, runs, GONE) for _ in range(5)] == [GONE] * 5
    assert len(runs) == 1


@pytest.mark.parametrize("answer", [ABSENT, GOOD], ids=["has no such file", "has the file"])
def test_an_index_that_answers_is_asked_by_each(runs, answer):
    shared = Reach()
    assert [ask(shared, runs, answer) for _ in range(3)] == [answer] * 3
    assert len(runs) == 3


def test_another_index_is_asked_for_itself(runs):
    shared = Reach()
    indexes = (URL, None, "https://wheels.example/cpu")
    for index in (*indexes, URL, None):
        ask(shared, runs, GONE, index)
    assert runs == list(indexes)


def test_who_asks_meanwhile_waits_for_the_answer(runs):
    shared, asked, answered = Reach(), threading.Event(), threading.Event()
    slow = partial(shared.ask, URL, lambda: asked.set() or (answered.wait(10) and GONE), give_up=lambda: False)
    with ThreadPoolExecutor(max_workers=4) as pool:
        first = pool.submit(slow)
        asked.wait(10)
        waiting = [pool.submit(ask, shared, runs, GOOD) for _ in range(3)]
        answered.set()
        assert [each.result() for each in (first, *waiting)] == [GONE] * 4
    assert runs == []


@pytest.mark.parametrize("how", ["stopped", "long"])
def test_nobody_waits_for_an_index_that_sends_for_long_or_when_all_is_stopped(monkeypatch, runs, how):
    monkeypatch.setattr(fetch, "_LONGEST", 0.0 if how == "long" else 60.0)
    shared, asked, over = Reach(), threading.Event(), threading.Event()
    sending = partial(shared.ask, URL, lambda: asked.set() or (over.wait(10) and GOOD), give_up=lambda: False)
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(sending)
        asked.wait(10)
        assert ask(shared, runs, ABSENT, give_up=lambda: how == "stopped") == ABSENT
        over.set()


def test_who_breaks_off_leaves_nobody_waiting(runs):
    shared = Reach()
    with pytest.raises(KeyboardInterrupt):
        shared.ask(URL, raising(KeyboardInterrupt()), give_up=lambda: False)
    assert ask(shared, runs, GOOD) == GOOD
