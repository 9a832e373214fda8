"""Answer the ccache of each compilation of a build through a socket, and note where each object came from.

The protocol is that of https://ccache.dev/storage-helpers.html.
"""

import contextlib
import io
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
from typing import Protocol

from builder.compile_cache import LOCAL
from builder.compile_cache.caches import Caches, Found
from builder.compile_cache.folder import Entry
from builder.make.ccache import SOCKET
from builder.make.ninja_log import File

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


class Client(Protocol):
    """Answers one compilation; it is made when ccache connects, and called from a thread of its own."""

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, if there is one."""

    def put(self, key: str, value: bytes) -> None:
        """Keep a value."""

    def remove(self, key: str) -> None:
        """Forget a value."""

    def close(self) -> None:
        """The compilation has ended."""


Clients = Callable[[tuple[str, ...]], Client]
"""Makes what answers a compilation, given its command line where the system tells it."""


@contextlib.contextmanager
def answering(path: Path, clients: Clients) -> Iterator[None]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOrigin:
    """The origin of an object."""

    cache: str | None
    """The name of the cache that had it; None where it was compiled."""
    writer: str = ""
    """The machine that had compiled it."""
    saved: float = 0.0
    """Seconds that its compiler took there."""


@dataclass(slots=True, kw_only=True)
class Session:
    """The objects of one build, by the paths that ninja has for them; compilations call it from their threads."""

    caches: Caches
    origins: dict[str, ObjectOrigin] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    """The keys of what compilations were given."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, command: tuple[str, ...]) -> "_Compilation":
        """Return what answers the ccache of one command."""
        output = next((value for option, value in itertools.pairwise(command) if option == _OUTPUT), None)
        return _Compilation(session=self, output=output)

    def note(self, output: str | None, origin: ObjectOrigin) -> None:
        """Remember where an object came from."""
        if output is not None:
            with self.lock:
                self.origins[output] = origin

    def explain(self, files: Sequence[File]) -> tuple[File, ...]:
        """Return what ninja made, each object with where it came from."""
        with self.lock:
            origins = dict(self.origins)
        found = []
        for file in files:
            origin = origins.get(file["output"])
            if origin is None or origin.cache is None:
                found.append(file)
            else:
                found.append({**file, "cache": origin.cache, "writer": origin.writer, "saved": origin.saved})
        return tuple(found)

    def strangers(self) -> str:
        """Name the caches, but that of the store, that gave objects; empty where none did."""
        with self.lock:
            names = {origin.cache for origin in self.origins.values() if origin.cache not in {None, LOCAL}}
        return " and ".join(sorted(name for name in names if name is not None))

    def forget(self) -> bool:
        """Take out of the store what compilations were given; return whether there was something."""
        with self.lock:
            given = tuple(self.given)
            names = sorted({origin.cache for origin in self.origins.values() if origin.cache is not None})
        for key in given:
            self.caches.remove(key)
        if given:
            self.caches.warn(f"objects of {' and '.join(names)} could not be linked, so all were compiled here")
        return bool(given)


@dataclass(slots=True, kw_only=True)
class _Compilation:
    session: Session
    output: str | None
    began: float = field(default_factory=time.monotonic)
    found: Found | None = None
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
        if self.found is None or not self.found.entry.holds_object or self.wrote:
            self.session.note(self.output, ObjectOrigin(cache=None))
        else:
            entry = self.found.entry
            self.session.note(
                self.output, ObjectOrigin(cache=self.found.cache, writer=entry.writer, saved=entry.seconds)
            )


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
