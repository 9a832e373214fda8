"""ccache's protocol over a Unix socket, as https://ccache.dev/storage-helpers.html has it."""

import os
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from builder.compile_cache import session

GREETING = b"\x01\x01\x00"
KEY = bytes(range(20))
ASKED = bytes([len(KEY)]) + KEY
"""A key, as ccache writes it."""


@pytest.fixture
def values():
    return {}


@pytest.fixture
def log():
    return []


@pytest.fixture
def clients(values, log):
    """Make what keeps values in a dictionary, and notes who was there."""
    client = SimpleNamespace(
        get=values.get,
        put=values.__setitem__,
        remove=lambda key: values.pop(key, None),
        close=lambda: log.append(("closed",)),
    )
    return lambda command: log.append(("connected", command)) or client


@pytest.fixture
def serving(tmp_path, clients):
    path = tmp_path / "socket"
    with session.answering(path, clients):
        yield path


@contextmanager
def connected(path):
    with socket.socket(socket.AF_UNIX) as found:
        found.settimeout(5)
        found.connect(str(path))
        yield found


def read(connection, size):
    found = b""
    while len(found) < size and (more := connection.recv(size - len(found))):
        found += more
    return found


def test_a_value_is_put_got_and_removed(serving, values):
    with connected(serving) as connection:
        assert read(connection, 3) == GREETING
        connection.sendall(b"\x00" + ASKED)
        assert read(connection, 1) == b"\x01"
        connection.sendall(b"\x01" + ASKED + b"\x01" + struct.pack("=Q", 6) + b"object")
        assert read(connection, 1) == b"\x00"
        assert values == {KEY.hex(): b"object"}
        connection.sendall(b"\x00" + ASKED)
        assert read(connection, 15) == b"\x00" + struct.pack("=Q", 6) + b"object"
        connection.sendall(b"\x02" + ASKED)
        assert read(connection, 1) == b"\x00"
    assert values == {}


def test_many_compilations_at_once_are_answered(serving, values):
    def compile_one(number):
        name = bytes([number])
        with connected(serving) as connection:
            connection.sendall(b"\x01" + bytes([1]) + name + b"\x00" + struct.pack("=Q", 50_000) + name * 50_000)
            read(connection, 4)

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(compile_one, range(64)))
    assert {name: len(value) for name, value in values.items()} == {f"{number:02x}": 50_000 for number in range(64)}


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"\x09", id="a request that there is not"),
        pytest.param(b"\x00\x00", id="an empty key"),
        pytest.param(b"\x01" + ASKED + b"\x01" + struct.pack("=Q", 1 << 60), id="more than any object has"),
        pytest.param(b"\x01" + ASKED + b"\x01" + struct.pack("=Q", 9) + b"half", id="a value that ends early"),
        pytest.param(b"\x00\x14abc", id="a key that ends early"),
    ],
)
def test_what_is_no_request_ends_the_connection_and_keeps_nothing(serving, values, log, request_):
    with connected(serving) as connection:
        read(connection, 3)
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        assert read(connection, 1) == b""
    assert values == {}
    assert log[-1] == ("closed",)
    with connected(serving) as connection:  # and others are still answered
        assert read(connection, 3) == GREETING


def test_stopping_is_answered_and_the_server_stays(serving):
    with connected(serving) as connection:
        read(connection, 3)
        connection.sendall(b"\x03")
        assert read(connection, 1) == b"\x00"
    with connected(serving) as connection:
        assert read(connection, 3) == GREETING


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who asks")
def test_the_command_that_asks_is_known(serving, log):
    with connected(serving) as connection:
        read(connection, 3)
    own = Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]
    assert log[0] == ("connected", tuple(map(os.fsdecode, own)))


def test_afterwards_nobody_answers_and_nothing_is_left(tmp_path, clients):
    path = tmp_path / "socket"
    path.write_bytes(b"left by a dead process")
    with session.answering(path, clients), connected(path) as connection:
        assert read(connection, 3) == GREETING
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a way around")
def test_a_path_longer_than_an_address_works(tmp_path, clients):
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with session.answering(folder / "socket", clients):
        descriptor = os.open(folder, os.O_PATH)
        with connected(f"/proc/self/fd/{descriptor}/socket") as connection:
            assert read(connection, 3) == GREETING
        os.close(descriptor)
    assert list(folder.iterdir()) == []
