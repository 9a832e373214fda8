"""The caches of a run: the store's, and one that machines share. A failing cache never fails a build."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from builder.compile_cache import LOCAL, Access
from builder.compile_cache.folder import CacheError, DamagedError, Entry, Folder

T = TypeVar("T")

_WRITERS = 4
"""The number of parallel uploads."""


class SharedCache(Protocol):
    """A cache that several machines use."""

    @property
    def name(self) -> str:
        """Its name in messages: the address without a password."""

    def check(self, *, write: bool) -> None:
        """Check whether it can be used.

        Raises:
            CacheError: it cannot.
        """

    def get(self, key: str) -> Entry | None:
        """Return an entry.

        Raises:
            CacheError: it does not answer.
            DamagedError: the content is not an entry.
        """

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry.

        Raises:
            CacheError: it does not accept the entry.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHit:
    """An entry, and the cache that it came from."""

    entry: Entry
    cache: str


@dataclass(slots=True, kw_only=True)
class Caches:
    """The store's cache, which is asked first, and the shared one."""

    local: Folder
    writable: bool = True
    """Whether the store accepts entries."""
    shared: SharedCache | None = None
    access: Access = Access.READ
    writer: str = ""
    """The name of this machine, for entries that it writes."""
    _warnings: list[str] = field(default_factory=list)
    """The reasons why a cache is not used any more, a line each."""
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=_WRITERS))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _checked: bool = False
    _wrote: bool = False

    def check(self) -> None:
        """Check the shared cache once, before the first compilation; hits do not need it."""
        with self._lock:
            first, self._checked = not self._checked, True
        if first:
            self._ask(lambda shared: shared.check(write=self.access.writes))

    def close(self) -> None:
        """Wait for writes to finish, and trim the store's cache to its size."""
        self._pool.shutdown(wait=True)
        if self._wrote:
            self.local.trim()

    def warn(self, text: str) -> None:
        """Note why a cache is not used."""
        with self._lock:
            self._warnings.append(text)

    def warnings(self) -> tuple[str, ...]:
        """Return the reasons why caches are not used any more, each once."""
        with self._lock:
            found = tuple(self._warnings)
            self._warnings.clear()
        return found

    def get(self, key: str) -> CacheHit | None:
        """Return the entry of a key from the first cache that has it; the store keeps a shared entry, too."""
        if not self.access.reads:
            return None
        entry = self.local.get(key)
        if entry is not None:
            return CacheHit(entry=entry, cache=LOCAL)
        shared = self.shared
        entry = self._ask(lambda cache: cache.get(key))
        if entry is None or shared is None:
            return None
        self._keep(key, entry)
        return CacheHit(entry=entry, cache=shared.name)

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry in the store, and at the same time upload it to the shared cache if this build may."""
        self._keep(key, entry)
        if self.shared is not None and self.access.writes:
            self._pool.submit(self._ask, lambda cache: cache.put(key, entry))

    def remove(self, key: str) -> None:
        """Remove an entry from the store; this machine does not clean the shared cache."""
        if self.writable:
            self.local.remove(key)

    def _keep(self, key: str, entry: Entry) -> None:
        if not self.writable:
            return
        try:
            self.local.put(key, entry)
            self._wrote = True
        except CacheError as error:
            with self._lock:
                first, self.writable = self.writable, False
            if first:
                self.warn(f"compiled files are not kept: {error.message}")

    def _ask(self, ask: Callable[[SharedCache], T]) -> T | None:
        """Ask the shared cache; after a failure it is not asked again, since each wait would hold up a compiler."""
        shared = self.shared
        if shared is None:
            return None
        try:
            return ask(shared)
        except DamagedError:
            return None
        except CacheError as error:
            with self._lock:
                first, self.shared = self.shared is not None, None
            if first:
                self.warn(f"the cache {shared.name} is not used: {error}")
            return None
