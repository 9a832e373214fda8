"""One build's use of the cache: where each of its objects came from, and what that saved."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from builder.compile_cache import protocol
from builder.compile_cache.caches import Caches, Found
from builder.compile_cache.entry import Entry
from builder.compile_cache.options import LOCAL
from builder.make.ccache import SOCKET
from builder.make.ninja_log import File

_OUTPUT = "-o"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOrigin:
    """Where an object came from."""

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
    _given: set[str] = field(default_factory=set)
    """The keys of what compilations were given."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, command: tuple[str, ...]) -> "_Compilation":
        """Return what answers the ccache of one command."""
        return _Compilation(session=self, output=_output(command))

    def note(self, output: str | None, origin: ObjectOrigin) -> None:
        """Remember where an object came from."""
        if output is not None:
            with self._lock:
                self.origins[output] = origin

    def give(self, key: str) -> None:
        """Remember what a compilation was given."""
        with self._lock:
            self._given.add(key)

    def explain(self, files: Sequence[File]) -> tuple[File, ...]:
        """Return what ninja made, each object with where it came from."""
        with self._lock:
            return tuple(_explained(file, self.origins.get(file["output"])) for file in files)

    def strangers(self) -> str:
        """Name the caches, but that of the store, that gave objects; empty where none did."""
        with self._lock:
            names = {origin.cache for origin in self.origins.values() if origin.cache not in {None, LOCAL}}
        return " and ".join(sorted(name for name in names if name is not None))

    def forget(self) -> bool:
        """Take out of the store what compilations were given; return whether there was something."""
        with self._lock:
            given = tuple(self._given)
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
        self.session.give(key)
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


def _output(command: tuple[str, ...]) -> str | None:
    """Return what a compiler's command line writes."""
    return next((value for option, value in itertools.pairwise(command) if option == _OUTPUT), None)


def _explained(file: File, origin: ObjectOrigin | None) -> File:
    if origin is None or origin.cache is None:
        return file
    return {**file, "cache": origin.cache, "writer": origin.writer, "saved": origin.saved}


@contextlib.contextmanager
def serve(caches: Caches, *, scratch: Path) -> Iterator[Session | None]:
    """Answer the compilations of a build in `scratch`; None where that cannot be, and all of them compile."""
    session = Session(caches=caches)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(protocol.serve(scratch / SOCKET, session.client))
        except OSError as error:
            caches.warn(f"compiled files are not kept: no socket in '{scratch}': {error.strerror or error}")
            yield None
            return
        caches.check()
        yield session
