"""Entries of the cache, and folders of entries: the store's, or one that several machines share."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import json_text
from builder.errors import BuilderError
from builder.files import write_atomic
from builder.hashes import sha256

_LONGEST_HEADER = 4096
"""The most bytes of the header line before the value."""
_MAGIC, _RESULT = b"\xcc\xac", 0
"""The first bytes of ccache's values, and the fourth byte of values that hold an object and not a list of headers."""
_SHARDS = "0123456789abcdef"
"""The first digits of keys: each has a folder, with an equal share of the size."""
_DEAD = 3600.0
"""Seconds after which nobody can still be writing a file."""
_LEFT = 0.8
"""The share of a folder that stays after it became too large."""
UNVERIFIED = "its certificate does not verify, so it may be another one"
CERTIFY = "install the certificate of its authority in this system, or correct the name of the host"


class DamagedError(ValueError):
    """Bytes that are not an entry, or not the one that was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A value that ccache keeps under one key."""

    value: bytes
    seconds: float = 0.0
    """Seconds that the compiler took."""
    writer: str = ""
    """The machine that compiled it."""

    @property
    def holds_object(self) -> bool:
        """Whether this is a compiled object, and not the list of files that an object depends on."""
        return self.value[:2] == _MAGIC and self.value[3:4] == bytes([_RESULT])

    def to_bytes(self, key: str) -> bytes:
        """Return the entry as bytes to keep under a key: a line of JSON, then the value."""
        header = {"sha256": _digest(key, self.value), "seconds": round(self.seconds, 3), "writer": self.writer}
        return json_text.canonical(header).encode() + b"\n" + self.value

    @classmethod
    def from_bytes(cls, content: bytes, key: str) -> "Entry":
        """Read what `to_bytes` wrote under a key.

        Raises:
            DamagedError: the content is not an entry, or its value was not written under this key.
        """
        end = content.find(b"\n", 0, _LONGEST_HEADER)
        try:
            header: Any = json.loads(content[: max(end, 0)])
            value = content[end + 1 :]
            if header["sha256"] != _digest(key, value):
                raise DamagedError("its value is not the one that was written")
            return cls(value=value, seconds=float(header["seconds"]), writer=str(header["writer"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DamagedError(f"it cannot be read: {error}") from error


def _digest(key: str, value: bytes) -> str:
    return sha256(f"{key}\n".encode() + value)


class CacheError(BuilderError):
    """A cache of compiled files that cannot be used."""

    exit_code = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of entries, which several processes and machines may read and write."""

    root: Path
    limit: int | None = None
    """The most bytes that it may take; None if somebody else trims it."""
    distrusts: Callable[[Path], str | None] = field(default=lambda _: None)
    """Says why a file must not be used, for example that it belongs to another user."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return str(self.root)

    def check(self, *, write: bool) -> None:
        """Check whether it can be used.

        Raises:
            CacheError: the folder is missing, or cannot be read or written.
        """
        if not self.root.is_dir():
            raise CacheError(f"the folder '{self.root}' is not there", help="make it, or name another cache")
        if not os.access(self.root, os.R_OK | os.X_OK | (os.W_OK if write else 0)):
            raise CacheError(
                f"the folder '{self.root}' cannot be {'written' if write else 'read'}",
                help="change its permissions, or read from it alone: --cache-access read",
            )

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, and note its use; remove a damaged entry."""
        path = self._path(key)
        try:
            entry = self._read(path)
        except DamagedError:
            self.remove(key)
            return None
        if entry is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
        return entry

    def _read(self, path: Path) -> Entry | None:
        try:
            content = path.read_bytes() if path.is_file() and self.distrusts(path) is None else None
        except OSError:
            return None
        return None if content is None else Entry.from_bytes(content, path.name)

    def put(self, key: str, entry: Entry) -> None:
        """Write an entry, whole or not at all. It is not flushed, since the digest reveals a torn entry.

        Raises:
            CacheError: the entry cannot be written, for example because the disk is full.
        """
        path = self._path(key)
        try:
            write_atomic(path, entry.to_bytes(key), flush=False)
        except OSError as error:
            raise CacheError(f"'{path.parent}' cannot be written: {error.strerror}") from error

    def remove(self, key: str) -> None:
        """Remove an entry, if it exists."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def verify(self) -> tuple[int, int]:
        """Read every entry and remove damaged ones; return the number of entries, and of damaged ones."""
        paths = [path for shard in _SHARDS for _, _, path in _files(self.root / shard)]
        damaged = 0
        for path in paths:
            try:
                self._read(path)
            except DamagedError:  # noqa: PERF203  to read a file takes longer
                damaged += 1
                self.remove(path.name)
        return len(paths), damaged

    def trim(self) -> None:
        """Remove the least recently used entries if the folder is too large."""
        if self.limit is None:
            return
        for shard in _SHARDS:
            kept = sorted(_files(self.root / shard))
            left = sum(size for _, size, _ in kept)
            if left <= self.limit / len(_SHARDS):
                continue
            for _, size, path in kept:
                if left <= _LEFT * self.limit / len(_SHARDS):
                    break
                with contextlib.suppress(OSError):
                    path.unlink()
                    left -= size

    def _path(self, key: str) -> Path:
        return self.root / key[0] / key


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield the last use, size and path of each entry; remove temporary files of dead processes."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for item in found:
            with contextlib.suppress(OSError):
                status = item.stat(follow_symlinks=False)
                if not item.name.startswith("."):
                    yield status.st_mtime, status.st_size, Path(item.path)
                elif time.time() - status.st_mtime > _DEAD:
                    Path(item.path).unlink()
