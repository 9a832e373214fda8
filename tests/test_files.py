"""Files are written whole, by several processes at once, and the halves of killed ones go."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from builder.files import drop_unfinished, write_atomic

_WRITES_HALF = """
import os, sys, time
from pathlib import Path
from builder.files import write_atomic
os.fsync = lambda _: (print("all but the name", flush=True), time.sleep(600))
write_atomic(Path(sys.argv[1]), b"half")
"""


@pytest.fixture
def writer(tmp_path):
    """Return a process that has written a file, and has not renamed it."""
    command = (sys.executable, "-c", _WRITES_HALF, str(tmp_path / "a.whl"))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_what_another_process_is_writing_stays_and_goes_when_it_is_killed(tmp_path, writer):
    (half,) = tmp_path.iterdir()
    drop_unfinished(tmp_path / "a.whl")
    assert list(tmp_path.iterdir()) == [half]
    writer.kill()
    writer.wait()
    drop_unfinished(tmp_path / "other.whl")
    assert list(tmp_path.iterdir()) == [half]
    drop_unfinished(tmp_path / "a.whl")
    assert list(tmp_path.iterdir()) == []


def test_threads_that_write_one_path_and_remove_halves_disturb_none(tmp_path):
    path, contents = tmp_path / "a.whl", [bytes([number]) * 9000 for number in range(200)]

    def deliver(content: bytes) -> bytes:
        drop_unfinished(path)
        write_atomic(path, content)
        return path.read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(deliver, contents)) <= set(contents)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_where_nothing_can_be_locked(tmp_path, monkeypatch):
    half = tmp_path / ".a.whl.1.part"
    half.write_bytes(b"")
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(38, "no locks")))
    drop_unfinished(tmp_path / "a.whl")
    write_atomic(tmp_path / "a.whl", b"whole")
    assert (tmp_path / "a.whl").read_bytes() == b"whole"
    assert half.exists()  # nobody can say whose it is
