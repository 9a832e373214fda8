"""Answer the ccache of each compilation of a build through a socket, and note where each object came from.

The protocol is that of https://ccache.dev/storage-helpers.html.
"""

import contextlib
import itertools
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from builder.compile_cache import LOCAL
from builder.compile_cache.caches import CacheHit, Caches
from builder.compile_cache.folder import Entry
from builder.make.ccache import SOCKET
from builder.make.ninja_log import File, ObjectOrigin

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
_OUTPUT = "-o"


@contextlib.contextmanager
def answering(path: Path, clients: "Clients") -> Iterator[None]:
    """Answer ccache at the socket `path` until the block ends; that of a dead process is replaced.

    `clients` makes what answers a compilation, given its command line where the system tells it.

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

    def __init__(self, address: str, clients: "Clients") -> None:
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

    def _answer(self, client: "Compilation") -> bool:
        """Answer one request; return whether there may be another."""
        kind = self._read(1)
        if kind not in {_GET, _PUT, _REMOVE}:
            if kind == _STOP:
                self.wfile.write(_OK)
            return False
        key = self._read(self._read(1)[0]).hex()
        if not key:
            return False
        if kind == _GET:
            value = client.get(key)
            self.wfile.write(_NOTHING if value is None else _OK + _LENGTH.pack(len(value)) + value)
        elif kind == _PUT:
            self._read(1)  # whether to overwrite: entries of one key are all right
            (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
            if size > _LARGEST:
                return False
            client.put(key, self._read(size))
            self.wfile.write(_OK)
        else:
            client.remove(key)
            self.wfile.write(_OK)
        return True

    def _read(self, size: int) -> bytes:
        found = self.rfile.read(size)
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


@dataclass(slots=True, kw_only=True)
class Session:
    """The objects of one build, by the paths that ninja has for them; compilations call it from their threads."""

    caches: Caches
    origins: dict[str, ObjectOrigin] = field(default_factory=dict)
    """Empty for an object that was compiled here."""
    given: set[str] = field(default_factory=set)
    """The keys of what compilations were given."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, command: tuple[str, ...]) -> "Compilation":
        """Return what answers the ccache of one command."""
        output = next((value for option, value in itertools.pairwise(command) if option == _OUTPUT), None)
        return Compilation(session=self, output=output)

    def explain(self, files: Sequence[File]) -> tuple[File, ...]:
        """Return what ninja made, each object with where it came from."""
        with self.lock:
            return tuple({**file, **self.origins.get(file["output"], ObjectOrigin())} for file in files)

    def strangers(self) -> str:
        """Name the caches, but that of the store, that gave objects; empty where none did."""
        return " and ".join(name for name in self._names() if name != LOCAL)

    def _names(self) -> list[str]:
        with self.lock:
            return sorted({origin["cache"] for origin in self.origins.values() if "cache" in origin})

    def forget(self) -> bool:
        """Take out of the store what compilations were given; return whether there was something."""
        with self.lock:
            given = tuple(self.given)
        for key in given:
            self.caches.remove(key)
        if given:
            self.caches.warn(f"objects of {' and '.join(self._names())} could not be linked, so all were compiled here")
        return bool(given)


@dataclass(slots=True, kw_only=True)
class Compilation:
    """Answers the ccache of one command, from a thread of its own, from when it connects."""

    session: Session
    output: str | None
    began: float = field(default_factory=time.monotonic)
    found: CacheHit | None = None
    wrote: bool = False

    def get(self, key: str) -> bytes | None:
        """Return a value: first of what the object depended on before, then the object."""
        self.found = self.session.caches.get(key)
        if self.found is None:
            return None
        with self.session.lock:
            self.session.given.add(key)
        return self.found.entry.value

    def put(self, key: str, value: bytes) -> None:
        """Keep what was compiled."""
        self.wrote = True
        seconds = time.monotonic() - self.began
        self.session.caches.put(key, Entry(value=value, seconds=seconds, writer=self.session.caches.writer))

    def remove(self, key: str) -> None:
        """Forget what ccache cannot read."""
        self.session.caches.remove(key)

    def close(self) -> None:
        """Note what became of the object: it is from a cache if the last answer was one, and nothing was kept.

        ccache does not keep every object that it compiles: not one whose header changed meanwhile.
        """
        origin = ObjectOrigin()
        if self.found is not None and self.found.entry.holds_object and not self.wrote:
            entry = self.found.entry
            origin = ObjectOrigin(cache=self.found.cache, writer=entry.writer, saved=entry.seconds)
        if self.output is not None:
            with self.session.lock:
                self.session.origins[self.output] = origin


Clients = Callable[[tuple[str, ...]], Compilation]


@contextlib.contextmanager
def serve(caches: Caches, *, scratch: Path) -> Iterator[Session | None]:
    """Answer the compilations of a build in `scratch`; None where that cannot be, and all of them compile."""
    session = Session(caches=caches)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(answering(scratch / SOCKET, session.client))
        except OSError as error:
            caches.warn(f"compiled files are not kept: no socket in '{scratch}': {error.strerror or error}")
            yield None
            return
        caches.check()
        yield session
