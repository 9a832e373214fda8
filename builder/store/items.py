"""List the items of a store, and remove them by age and size, but never while they are in use."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from builder.store import COMPILED, COMPILERS, HEADERS, KERNELS, SOURCES, Store

Kind = Literal["wheel", "environment", "headers", "sources", "kernels", "compilers", "compiled", "partial", "log"]

_KINDS: dict[str, tuple[Kind, str]] = {
    "wheels": ("wheel", "entry.json"),
    "environments": ("environment", "pins.json"),
    HEADERS: ("headers", ""),
    SOURCES: ("sources", "source.json"),
    KERNELS: ("kernels", ""),
    COMPILERS: ("compilers", ""),
    "partial": ("partial", "src"),
}
"""For each folder: the kind of its items, and the file in each item whose time is that of the last use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A part of the store that is removed as a whole."""

    kind: Kind
    name: str
    path: Path
    size: int
    """Bytes on the disk; a file with several hard links counts in each item."""
    used: float
    """The time of the last use, in seconds since 1970 by the file system's clock."""

    @property
    def lock(self) -> str:
        """The lock that is held while the item is used."""
        is_fetched = self.kind in {"environment", HEADERS, SOURCES, KERNELS, COMPILERS}
        return f"{self.kind}-{self.name}" if is_fetched else self.name


def items(store: Store) -> Iterator[Item]:
    """Yield the items of the store, the least recently used first."""
    found = [item for folder, (kind, marker) in _KINDS.items() for item in _folders(store.root / folder, kind, marker)]
    for shard in _listed(store.root / COMPILED):
        found += _files(shard, COMPILED)
    found += _files(store.root / "logs", "log")
    yield from sorted(found, key=lambda item: (item.used, item.kind, item.name))


def _listed(root: Path) -> list[Path]:
    return [path for path in sorted(root.iterdir()) if not path.name.startswith(".")] if root.is_dir() else []


def _folders(root: Path, kind: Kind, marker: str) -> Iterator[Item]:
    for path in _listed(root):
        with contextlib.suppress(OSError):  # another process removed it meanwhile
            used = max(path.stat().st_mtime, (path / marker).stat().st_mtime if (path / marker).exists() else 0)
            yield Item(kind=kind, name=path.name, path=path, size=_size(path), used=used)


def _files(root: Path, kind: Kind) -> Iterator[Item]:
    for path in _listed(root):
        with contextlib.suppress(OSError):
            status = path.stat()
            yield Item(kind=kind, name=path.name, path=path, size=status.st_size, used=status.st_mtime)


def summed(found: Iterable[Item]) -> Iterator[Item]:
    """Yield items in order, with all compiled files as one item at the place of the last used one."""
    found = tuple(found)
    compiled = [item for item in found if item.kind == COMPILED]
    for item in found:
        if item.kind != COMPILED:
            yield item
        elif item is compiled[-1]:
            name, folder = f"{len(compiled)} files", item.path.parent.parent
            yield replace(item, name=name, path=folder, size=sum(each.size for each in compiled))


def _size(folder: Path) -> int:
    total = 0
    for base, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{base}/{name}").st_blocks * 512
    return total


def collect(
    store: Store, *, now: float, max_age: float | None, max_size: int | None, dry_run: bool = False
) -> tuple[Item, ...]:
    """Remove items unused for `max_age` seconds, then the least recently used until `max_size` bytes are left.

    Items that a process uses stay. Setting the clock back does not make items old.
    """
    known = list(items(store))
    total = sum(item.size for item in known)
    removed = []
    for item in known:
        old = max_age is not None and now - item.used > max_age
        large = max_size is not None and total > max_size
        if (old or large) and (dry_run or _remove(store, item)):
            removed.append(item)
            total -= item.size
    return tuple(removed)


def _remove(store: Store, item: Item) -> bool:
    """Remove an item unless it is in use or another user's; return whether it is gone."""
    try:
        if item.path.lstat().st_uid != os.geteuid() and os.geteuid() != 0:
            return False
        if item.kind in {"log", COMPILED}:
            item.path.unlink(missing_ok=True)
            return True
        with store.lock(item.lock, wait=False) as held:
            if held and item.kind == "wheel":
                store.remove(item.name)
            elif held:
                # Renamed first, so that another process finds all of it or nothing.
                aside = item.path.with_name(f".removed-{item.name}")
                item.path.rename(aside)
                shutil.rmtree(aside, ignore_errors=True)
            return held
    except OSError:  # a folder that cannot be written
        return False
