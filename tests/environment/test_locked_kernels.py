"""Kernels that are fetched for a build, which can be stopped meanwhile."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from builder.config.v5 import KernelDependency
from builder.environment.download import Fetching
from builder.environment.locked_kernels import LockedKernels
from builder.errors import ToolError
from builder.store import Store


def test_a_fetch_ends_when_the_build_is_stopped_and_leaves_nothing(tmp_path):
    store, asked = Store(tmp_path / "store"), threading.Event()
    store.prepare()
    fetching = Fetching(store=store, environ={}, progress=lambda _: None)
    slow = SimpleNamespace(commit=lambda _: "a" * 40, fetch=lambda *_: asked.set() or time.sleep(60))
    keeper = LockedKernels(fetching=fetching, source=slow)
    with ThreadPoolExecutor(max_workers=1) as pool:
        locking = pool.submit(keeper.lock, [KernelDependency(repo_id="team/base", version=1)])
        assert asked.wait(10)
        fetching.processes.cancel()
        error = locking.exception(10)
    assert isinstance(error, ToolError)
    assert "stopped while 'team/base' was fetched" in error.message
    assert not (store.root / "kernels").exists()
    assert list((store.root / "scratch").iterdir()) == []
