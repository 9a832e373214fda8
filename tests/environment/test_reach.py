"""An index that cannot be reached is asked once in a run, whoever needs it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from builder.environment import fetch
from builder.environment.fetch import Reach
from builder.run import Completed

URL = "https://wheels.example/cu132"
GONE = Completed(returncode=2, output="error: Request failed after 3 retries\n  cause: dns error\n", peak=0)
ABSENT = Completed(returncode=1, output="torch was not found in the package registry\n", peak=0)
GOOD = Completed(returncode=0, output="", peak=0)


class Uv:
    """Counts how often it is run, and gives the answers it was given; the last one from then on."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.runs = 0

    def __call__(self):
        self.runs += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def ask(shared, uv, index=URL, *, give_up=lambda: False):
    return shared.ask(index, uv, give_up=give_up)


def test_an_index_out_of_reach_is_asked_once():
    shared, uv = Reach(), Uv(GONE)
    assert [ask(shared, uv) for _ in range(5)] == [GONE] * 5
    assert uv.runs == 1


@pytest.mark.parametrize("answer", [ABSENT, GOOD], ids=["has no such file", "has the file"])
def test_an_index_that_answers_is_asked_by_each(answer):
    shared, uv = Reach(), Uv(answer)
    assert [ask(shared, uv) for _ in range(3)] == [answer] * 3
    assert uv.runs == 3


def test_another_index_is_asked_for_itself():
    shared, uv = Reach(), Uv(GONE)
    for index in (URL, None, "https://wheels.example/cpu", URL, None):
        ask(shared, uv, index)
    assert uv.runs == 3


def test_who_asks_meanwhile_waits_for_the_answer():
    shared, asked, answered = Reach(), threading.Event(), threading.Event()

    def slow():
        asked.set()
        answered.wait(10)
        return GONE

    others = Uv(GOOD)
    with ThreadPoolExecutor(max_workers=4) as pool:
        first = pool.submit(ask, shared, slow)
        asked.wait(10)
        waiting = [pool.submit(ask, shared, others) for _ in range(3)]
        answered.set()
        assert [each.result() for each in (first, *waiting)] == [GONE] * 4
    assert others.runs == 0


@pytest.mark.parametrize("how", ["stopped", "long"])
def test_nobody_waits_for_an_index_that_sends_for_long_or_when_all_is_stopped(monkeypatch, how):
    monkeypatch.setattr(fetch, "_LONGEST", 0.0 if how == "long" else 60.0)
    shared, asked, over = Reach(), threading.Event(), threading.Event()

    def sending():
        asked.set()
        over.wait(10)
        return GOOD

    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(ask, shared, sending)
        asked.wait(10)
        assert ask(shared, Uv(ABSENT), give_up=lambda: how == "stopped") == ABSENT
        over.set()


def test_who_breaks_off_leaves_nobody_waiting():
    def broken():
        raise KeyboardInterrupt

    shared = Reach()
    with pytest.raises(KeyboardInterrupt):
        ask(shared, broken)
    assert ask(shared, Uv(GOOD)) == GOOD
