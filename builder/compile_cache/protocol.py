"""What ccache asks for its entries through a Unix socket: https://ccache.dev/storage-helpers.html."""

import contextlib
import io
import os
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

_GREETING = bytes((1, 1, 0))
"""Version 1 of the protocol, and one capability: get, put and remove."""
_GET, _PUT, _REMOVE, _STOP = b"\x00", b"\x01", b"\x02", b"\x03"
_OK, _NOTHING = b"\x00", b"\x01"
_LENGTH = struct.Struct("=Q")
_CREDENTIALS = struct.Struct("3i")
_LARGEST = 1 << 30
"""Bytes of the largest value that is taken; a client that announces more is not ccache."""
_LONGEST_PATH = 100
"""Bytes that a socket's address may have; systems allow 104 or 108."""


class Client(Protocol):
    """What one compilation asks; made when ccache connects, called from a thread of its own."""

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, if there is one."""

    def put(self, key: str, value: bytes) -> None:
        """Keep a value."""

    def remove(self, key: str) -> None:
        """Forget a value."""

    def close(self) -> None:
        """The compilation has ended."""


class Clients(Protocol):
    """Makes what answers a compilation, given its command line where the system tells it."""

    def __call__(self, command: tuple[str, ...]) -> Client:
        """Return what answers."""


@contextlib.contextmanager
def serve(path: Path, clients: Clients) -> Iterator[None]:
    """Answer ccache at the socket `path` until the block ends; that of a dead process is replaced.

    Raises:
        OSError: the socket cannot be made.
    """
    path.unlink(missing_ok=True)
    with _short(path) as address, _Server(address, clients) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield an address of the socket that is short enough: Linux finds a folder by its descriptor."""
    if len(os.fsencode(path)) <= _LONGEST_PATH or sys.platform != "linux":
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: str, clients: Clients) -> None:
        self.clients = clients
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Drop the connection: ccache compiles, as it does when nobody answers."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer one compilation until it hangs up."""
        client = self.server.clients(_command(self.connection))
        try:
            self.wfile.write(_GREETING)
            with contextlib.suppress(EOFError, ConnectionError):
                while self._answer(client):
                    pass
        finally:
            client.close()

    def _answer(self, client: Client) -> bool:
        """Answer one request; return whether there may be another."""
        kind = _read(self.rfile, 1)
        if kind not in {_GET, _PUT, _REMOVE}:
            if kind == _STOP:
                self.wfile.write(_OK)
            return False
        key = _read(self.rfile, _read(self.rfile, 1)[0]).hex()
        if not key:
            return False
        if kind == _GET:
            value = client.get(key)
            self.wfile.write(_NOTHING if value is None else _OK + _LENGTH.pack(len(value)) + value)
        elif kind == _PUT:
            _read(self.rfile, 1)  # whether to overwrite: entries of one key are all right
            (size,) = _LENGTH.unpack(_read(self.rfile, _LENGTH.size))
            if size > _LARGEST:
                return False
            client.put(key, _read(self.rfile, size))
            self.wfile.write(_OK)
        else:
            client.remove(key)
            self.wfile.write(_OK)
        return True


def _read(file: io.BufferedIOBase, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found


def _command(connection: socket.socket) -> tuple[str, ...]:
    """Return the command line of the process at the other end, where the system tells it; else nothing."""
    if sys.platform != "linux":
        return ()
    try:
        pid, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(part.decode("utf-8", "replace") for part in line.split(b"\0")[:-1])
