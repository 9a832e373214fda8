"""An index that never ends holds nothing up: not Ctrl-C, not a time limit, not the memory of the machine."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from builder import run
from builder.environment import fetch
from builder.errors import ToolError
from builder.pins import PinnedWheel
from builder.run import Limits, Processes
from builder.store import Store
from builder.store.locks import StoppedError
from tests.given import processes
from tests.given.environments import NOWHERE, make, pinset
from tests.paths import ROOT

PINS = pinset(PinnedWheel(file="alpha-1.0-py3-none-any.whl", name="alpha", version="1.0", sha256="0" * 64))
RELU = ROOT / "examples" / "relu"
HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<!DOCTYPE html>"


@contextlib.contextmanager
def endless(piece, *, pause):
    """Serve an index whose every page is `piece` for ever; yields its address, and an event: somebody reads."""
    reading, over = threading.Event(), threading.Event()

    class Handler(StreamRequestHandler):
        def handle(self):
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.wfile.write(HEADER)
                reading.set()
                while not over.wait(pause):
                    self.wfile.write(piece)

    class Server(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple", reading
        finally:
            over.set()
            server.shutdown()


def start_build(tmp_path, url, *arguments):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    env = {**clean, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": url, "UV_HTTP_RETRIES": "0"}
    where = ("--store", str(tmp_path / "store"), "--output", str(tmp_path / "dist"))
    argv = [sys.executable, "-m", "builder", "build", str(RELU), "--backend", "cpu", *where, *arguments]
    return subprocess.Popen(
        argv,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
    )


needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are seen in /proc")


@needs_proc
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_installation_from_an_index_that_drips_is_stopped_at_once(tmp_path, sign):
    with endless(b" ", pause=0.1) as (url, reading):
        build = start_build(tmp_path, url)
        assert reading.wait(60)
        began = time.monotonic()
        build.send_signal(sign)
        said, _ = build.communicate(timeout=30)
    assert time.monotonic() - began < 15, said  # the index has no end; 0.2 s on a machine that does nothing else
    assert build.returncode == 130, said
    assert [words for words in processes.running().values() if str(tmp_path / "store") in " ".join(words)] == []
    assert [path.name for path in (tmp_path / "store" / "environments").iterdir()] == []


@needs_proc
def test_a_time_limit_ends_an_installation_from_an_index_that_drips(tmp_path):
    began = time.monotonic()
    with endless(b" ", pause=0.1) as (url, reading):
        build = start_build(tmp_path, url, "--time-limit", "6s")
        said, _ = build.communicate(timeout=60)
    assert reading.is_set(), said
    assert time.monotonic() - began < 30, said
    assert build.returncode == 1, said
    assert "stopped" in said
    assert [words for words in processes.running().values() if str(tmp_path / "store") in " ".join(words)] == []


def test_an_index_that_drips_is_given_up_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "LIMITS", Limits(seconds=2, memory=1 << 30, file=1 << 30))
    with endless(b" ", pause=0.1) as (url, _), pytest.raises(ToolError, match="ran longer than 2 seconds"):
        make(tmp_path, PINS, {"PIP_INDEX_URL": url})


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds the memory of a process that runs already")
def test_a_page_without_end_takes_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "LIMITS", Limits(seconds=60, memory=512 << 20, file=1 << 30))
    with endless(b"<a>" * 100_000, pause=0) as (url, _), pytest.raises(ToolError) as raised:
        make(tmp_path, PINS, {"PIP_INDEX_URL": url})
    assert type(raised.value) is ToolError
    assert "ran longer" not in str(raised.value)


def test_a_page_without_end_is_held_to_a_size_that_a_machine_has():
    assert fetch.LIMITS.memory <= 4 << 30
    assert fetch.LIMITS.seconds <= 7200


def test_who_waits_for_another_process_that_makes_an_environment_hears_that_it_is_over(tmp_path):
    store = Store(tmp_path / "store")
    store.prepare()
    processes = Processes()
    with (store.root / "locks" / f"environment-{PINS.digest}").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(0.3, processes.cancel).start()
        began = time.monotonic()
        with pytest.raises(StoppedError):
            make(tmp_path, PINS, NOWHERE, processes=processes)
    assert time.monotonic() - began < 5


def test_nothing_is_tried_again_after_the_end(tmp_path):
    processes = Processes()
    processes.cancel()
    began = time.monotonic()
    with pytest.raises(ToolError):
        make(tmp_path, PINS, NOWHERE, processes=processes)
    assert time.monotonic() - began < 5


def test_several_tools_that_do_not_listen_are_ended_within_the_patience_for_one(monkeypatch):
    monkeypatch.setattr(run, "_PATIENCE", 2)
    processes = Processes()
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    up = threading.Semaphore(0)
    threads = [
        threading.Thread(
            target=run.run,
            args=([sys.executable, "-c", deaf],),
            kwargs={"processes": processes, "on_line": lambda _: up.release()},
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert up.acquire(timeout=30)
    began = time.monotonic()
    processes.cancel()
    for thread in threads:
        thread.join(30)
    assert time.monotonic() - began < 6  # one after the other, it takes 8
