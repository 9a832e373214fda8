"""A load test imports the framework where the compilers leave a core."""

import threading
import time

import pytest

from builder.loadtest.pacing import paced


class Core:
    """A core that is free or not, by what a test says; it counts who has it."""

    def __init__(self):
        self.free = False
        self.taken = False
        self.looks = threading.Semaphore(0)

    def take(self):
        self.taken = self.taken or self.free
        self.looks.release()
        return self.taken

    def give_back(self):
        self.taken = False


class Process:
    """What a process is told."""

    def __init__(self):
        self.waits = False
        self.told = []

    def pause(self):
        self.told.append("pause")

    def resume(self):
        self.told.append("resume")


class Place:
    """A paced process and what decides about it."""

    def __init__(self):
        self.core, self.process = Core(), Process()
        self.compiling, self.wanted = threading.Event(), threading.Event()

    def paced(self):
        return paced(self.process, core=self.core, compiling=self.compiling, wanted=self.wanted)

    def look(self, times=1):
        for _ in range(times):
            assert self.core.looks.acquire(timeout=20)


def until(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def place():
    return Place()


def test_it_runs_while_there_is_nothing_to_compile(place):
    with place.paced():
        assert not place.core.looks.acquire(timeout=0.5)
        assert place.process.told == []
    assert place.process.told == []


def test_it_stops_while_the_compilers_have_all_cores_and_goes_on_where_one_is_free(place):
    with place.paced():
        place.compiling.set()
        place.look(3)
        assert place.process.told == ["pause"]
        place.core.free = True
        until(lambda: place.process.told == ["pause", "resume"])
        assert place.core.taken
    assert place.process.told == ["pause", "resume"]
    assert not place.core.taken


def test_a_core_between_two_compilers_is_left_to_the_next(place):
    with place.paced():
        place.compiling.set()
        place.look(2)
        for _ in range(3):
            place.core.free = True
            place.look()
            place.core.free = False
            place.look(2)
        assert place.process.told == ["pause"]


def test_the_core_is_given_back_when_it_waits(place):
    place.core.free = True
    with place.paced():
        place.compiling.set()
        until(lambda: place.core.taken and place.process.told == ["pause", "resume"])
        place.process.waits = True
        until(lambda: not place.core.taken)


def test_it_goes_on_when_it_is_wanted(place):
    with place.paced():
        place.compiling.set()
        until(lambda: place.process.told == ["pause"])
        place.wanted.set()
        until(lambda: place.process.told == ["pause", "resume"])
