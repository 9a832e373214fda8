"""Kernels that are fetched for a build, which can be stopped meanwhile."""

import threading
import time
from dataclasses import dataclass

import pytest

from builder.config.v5 import KernelDependency
from builder.environment.locked_kernels import LockedKernels
from builder.errors import BuilderError, ToolError
from builder.run import Processes
from builder.store import Store

BASE = KernelDependency(repo_id="team/base", version=1)


@dataclass
class Slow:
    """A place that never answers."""

    asked: threading.Event

    def commit(self, _wanted):
        return "a" * 40

    def fetch(self, _repo_id, _commit, _target):
        self.asked.set()
        time.sleep(60)


def test_a_fetch_ends_when_the_build_is_stopped_and_leaves_nothing(tmp_path):
    store = Store(tmp_path / "store")
    store.prepare()
    processes, asked = Processes(), threading.Event()
    keeper = LockedKernels(store=store, source=Slow(asked), progress=lambda _: None, processes=processes)
    failed = []

    def lock():
        with pytest.raises(BuilderError) as refused:
            keeper.lock([BASE])
        failed.append(refused.value)

    thread = threading.Thread(target=lock)
    thread.start()
    assert asked.wait(10)
    processes.cancel()
    thread.join(10)
    assert isinstance(failed[0], ToolError)
    assert "stopped while 'team/base' was fetched" in failed[0].message
    assert not (store.root / "kernels").exists()
    assert list((store.root / "scratch").iterdir()) == []
