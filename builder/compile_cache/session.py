"""Answer ccache, for each compilation of a build, through a socket, and note the origin of each object.

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
"""The largest value that is accepted, in bytes; a client that announces more is not ccache."""
_LONGEST_PATH = 100
"""The longest address of a socket, in bytes; systems allow 104 or 108."""
_OUTPUT = "-o"


@contextlib.contextmanager
def answering(path: Path, clients: "Clients") -> Iterator[None]:
    """Answer ccache at the socket `path` until the block ends; the socket of a dead process is replaced.

    `clients` makes the object that answers a compilation, from its command line if the system tells it.

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
    """Yield a short enough address of the socket: on Linux, by the descriptor of its folder."""
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
        """Drop the connection: ccache then compiles, as without an answer."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer one compilation until it disconnects."""
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
            self._read(1)  # the flag to overwrite; entries of one key are interchangeable
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
    """Return the command line of the process at the other end; empty if the system does not tell."""
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
    """The objects of one build, by ninja's paths; several compilations use it from their threads."""

    caches: Caches
    origins: dict[str, ObjectOrigin] = field(default_factory=dict)
    """Empty for an object that was compiled here."""
    given: set[str] = field(default_factory=set)
    """The keys of the entries that compilations received."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, command: tuple[str, ...]) -> "Compilation":
        """Return the object that answers the ccache of one command."""
        output = next((value for option, value in itertools.pairwise(command) if option == _OUTPUT), None)
        return Compilation(session=self, output=output)

    def explain(self, files: Sequence[File]) -> tuple[File, ...]:
        """Return ninja's files, each object with its origin."""
        with self.lock:
            return tuple({**file, **self.origins.get(file["output"], ObjectOrigin())} for file in files)

    def strangers(self) -> str:
        """Return the names of the caches, other than the store's, that gave objects; empty without one."""
        return " and ".join(name for name in self._names() if name != LOCAL)

    def _names(self) -> list[str]:
        with self.lock:
            return sorted({origin["cache"] for origin in self.origins.values() if "cache" in origin})

    def forget(self) -> bool:
        """Remove the entries that compilations received from the store; return whether there were any."""
        with self.lock:
            given = tuple(self.given)
        for key in given:
            self.caches.remove(key)
        if given:
            self.caches.warn(f"objects of {' and '.join(self._names())} could not be linked, so all were compiled here")
        return bool(given)


@dataclass(slots=True, kw_only=True)
class Compilation:
    """Answers the ccache of one command, in a thread, from its first connection."""

    session: Session
    output: str | None
    began: float = field(default_factory=time.monotonic)
    found: CacheHit | None = None
    wrote: bool = False

    def get(self, key: str) -> bytes | None:
        """Return a value: ccache asks first for the list of headers, then for the object."""
        self.found = self.session.caches.get(key)
        if self.found is None:
            return None
        with self.session.lock:
            self.session.given.add(key)
        return self.found.entry.value

    def put(self, key: str, value: bytes) -> None:
        """Keep a compiled value."""
        self.wrote = True
        seconds = time.monotonic() - self.began
        self.session.caches.put(key, Entry(value=value, seconds=seconds, writer=self.session.caches.writer))

    def remove(self, key: str) -> None:
        """Remove an entry that ccache cannot read."""
        self.session.caches.remove(key)

    def close(self) -> None:
        """Note the origin of the object: a cache, if the last answer was an object and nothing was put.

        ccache does not keep every object that it compiles, for example if a header changed meanwhile.
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
    """Answer the compilations of a build in `scratch`; yield None if that is impossible, so that all files compile."""
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
