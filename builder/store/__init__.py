"""The content-addressed store: an entry is complete or absent, locked while it is made, verified when used."""

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from builder import json_text
from builder.errors import BuilderError
from builder.files import flush_names, lock, write_atomic
from builder.hashes import sha256, sha256_of
from builder.store import locks

_ENTRY = "entry.json"
HEADERS = "headers"
"""The folder with headers of fetched commits."""
SOURCES = "sources"
"""The folder with the trees of foreign sources."""
KERNELS = "kernels"
"""The folder with locked kernels, by hash."""
COMPILERS = "compilers"
"""The folder with pinned compilers, by the hash of their files."""
COMPILED: Final = "compiled"
"""The folder with compiled files."""
_FOLDERS = ("wheels", "environments", COMPILED, "partial", "locks", "logs", "last", "notes", "scratch")
_SURELY_DEAD = 3600.0
"""Seconds after which no process can still be writing a file of a few kilobytes."""
_LARGEST = 64 << 20
"""The most bytes of a JSON file in a store."""
_SETTLED_NS = 2_000_000_000
_TURN = 0.05
"""Seconds between two attempts to get a lock."""

Measure = Literal["peak", "seconds", "quick-seconds"]
"""The memory of the largest compiler in bytes, or the seconds to compile and finish."""


class StoreError(BuilderError):
    """The store cannot be used."""

    exit_code = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWheel:
    """A built wheel in the store."""

    key: str
    wheel: Path
    sha256: str
    record: Mapping[str, Any]
    """The build record whose digest is the key."""
    report: Mapping[str, Any]
    """Facts about the build that do not affect its bytes: seconds, architectures, audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """An entry that was damaged and removed."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Store:
    """A directory shared by processes and hosts."""

    root: Path

    def prepare(self) -> bool:
        """Make the directories, and remove the leftovers of dead processes; return whether the store can be written.

        Raises:
            StoreError: the directories cannot be made.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            mode = stat.S_IMODE(self.root.stat().st_mode)
            for folder in (self.root / name for name in _FOLDERS):
                if not folder.is_dir():
                    folder.mkdir(exist_ok=True)
                    if mode & (stat.S_IWGRP | stat.S_IWOTH):  # whoever may write to the store may write here
                        folder.chmod(mode)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            if error.errno in locks.READ_ONLY and (self.root / "wheels").is_dir():
                return False
            raise StoreError(
                f"cannot make a store at '{self.root}': {error.strerror}",
                help="free the disk, or name another place with --store or BUILDER_STORE",
            ) from error
        if not all(os.access(self.root / name, os.W_OK | os.X_OK) for name in _FOLDERS):
            return False  # another user made it only for himself
        locks.sweep(self.root / "scratch")
        self._drop_leftovers()
        return True

    @property
    def shared(self) -> bool:
        """Whether the store belongs to a group whose members may write and are trusted."""
        mode = self.root.stat().st_mode
        return bool(mode & stat.S_IWGRP) and not mode & stat.S_IWOTH

    def stranger(self, path: Path) -> str | None:
        """Return the owner of `path` if the store distrusts them; it trusts this user, its owner, its group and root.

        A digest next to a file proves nothing, since its writer wrote both.
        """
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return "it is a symbolic link"
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return "anybody may write into it"
        if status.st_uid in (os.geteuid(), 0, self.root.stat().st_uid) or self.shared:
            return None
        return f"it belongs to the user {status.st_uid}, whom this store does not trust"

    def _drop_leftovers(self) -> None:
        """Remove the unfinished entries of killed processes, whose locks are free."""
        for path in (self.root / "wheels").glob(".*"):
            key = path.name[1:].partition("-")[0]
            with contextlib.ExitStack() as stack, contextlib.suppress(OSError):  # not an entry's name, or not our lock
                if key == "" or stack.enter_context(self.lock(key, wait=False)):
                    shutil.rmtree(path, ignore_errors=True)
        for folder in ("last", "notes"):
            for path in (self.root / folder).glob(".*.part"):
                with contextlib.suppress(OSError):
                    if time.time() - path.stat().st_mtime > _SURELY_DEAD:
                        path.unlink()

    def find(self, key: str) -> StoredWheel | Damaged | None:
        """Return the entry of `key`, or a report that it was damaged; None if there is none."""
        folder = self.root / "wheels" / key
        if not os.path.lexists(folder):
            return None
        try:
            why = self.stranger(folder)
            return _read(folder) if why is None else Damaged(key=key, why=why)
        except FileNotFoundError:
            # Another process removed it meanwhile, or it is incomplete.
            return Damaged(key=key, why="it is not whole") if os.path.lexists(folder) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            return Damaged(key=key, why=str(error))

    def put(
        self, key: str, wheel: tuple[str, bytes], *, record: Mapping[str, Any], report: Mapping[str, Any]
    ) -> StoredWheel:
        """Add a wheel (file name, content) under `key`, replacing a damaged entry; all or nothing.

        The caller holds the lock of the key.

        Raises:
            ValueError: the name is not a valid file name, or reading the file back gave other content.
        """
        name, content = wheel
        aside = self._aside(key)
        target = self.root / "wheels" / key
        try:
            write_atomic(aside / name, content)
            digest = sha256(content)
            entry = {"wheel": name, "sha256": digest, "record": record, "report": report}
            write_atomic(aside / _ENTRY, json_text.document(entry, indent=1, ordered=True).encode())
            aside.chmod(0o775 if self.shared else 0o755)
            flush_names(aside)
            if os.path.lexists(target):
                self.remove(key)
            aside.rename(target)
            flush_names(target.parent)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return _read(target)

    def remove(self, key: str) -> None:
        """Remove an entry: rename it first, so that no reader sees half of it. The caller holds the lock of the key."""
        aside = self._aside(key)
        with contextlib.suppress(FileNotFoundError):
            (self.root / "wheels" / key).rename(aside / "entry")
        shutil.rmtree(aside, ignore_errors=True)

    def _aside(self, key: str) -> Path:
        """Make a temporary folder named after the key: if the key's lock is free, the process that made it is dead."""
        return Path(tempfile.mkdtemp(prefix=f".{key}-", dir=self.root / "wheels"))

    def entries(self) -> Iterator[StoredWheel | Damaged]:
        """Yield every entry, by key."""
        folder = self.root / "wheels"
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not path.name.startswith("."):
                found = self.find(path.name)
                if found is not None:
                    yield found

    @contextlib.contextmanager
    def use(self, name: str) -> Iterator[None]:
        """Take the lock `name` shared, so that nobody removes the locked item while it is used.

        Raises:
            StoreError: the lock cannot be opened.
        """
        try:
            descriptor = locks.open_lock(self.root / "locks" / name)
        except OSError as error:
            raise StoreError(
                f"cannot lock '{name}' in '{self.root}', so that it may be removed while it is used: {error.strerror}",
                help="name a store of your own with --store or BUILDER_STORE",
            ) from error
        try:
            lock(descriptor, shared=True)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def lock(self, name: str, *, wait: bool = True, give_up: Callable[[], bool] | None = None) -> Iterator[bool]:
        """Take the lock `name`; yield whether it is held.

        The system drops it when a process dies, on this host or another: no lock is ever stale. A waiting thread calls
        `give_up` from time to time, since a thread in a system call does not notice Ctrl-C.

        Raises:
            StoppedError: `give_up` returned true.
        """
        descriptor = locks.open_lock(self.root / "locks" / name)
        try:
            held = lock(descriptor, wait=wait and give_up is None)
            while not held and wait and give_up is not None:
                if give_up():
                    raise locks.StoppedError("stopped while another process held a lock")
                time.sleep(_TURN)
                held = lock(descriptor, wait=False)
            yield held
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a private directory, which is removed at the end, even if this process is killed."""
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(locks.scratch(self.root / "scratch"))
            except OSError as error:
                if error.errno not in locks.READ_ONLY:
                    raise
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="builder-")))
            yield folder

    @contextlib.contextmanager
    def partial(self, key: str) -> Iterator[Path]:
        """Yield the directory of a build that may be stopped and continued; the caller holds the lock of `key`.

        If the build is stopped, the directory stays with all compiled files; when the build ends, it is removed.
        """
        folder = self.root / "partial" / key
        folder.mkdir(exist_ok=True)
        try:
            yield folder
        except locks.StoppedError:
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)

    def has_partial(self, key: str) -> bool:
        """Whether a stopped build of `key` can be continued."""
        return (self.root / "partial" / key).is_dir()

    def set_measured(self, kernel: str, variant: str, what: Measure, value: float) -> None:
        """Remember a measurement of a cell's last build, for the budget and the forecast of the next one."""
        with contextlib.suppress(OSError):
            write_atomic(self.root / "last" / f"{kernel}-{variant}.{what}", f"{round(value)}\n".encode())

    def measured(self, kernel: str, variant: str, what: Measure) -> int | None:
        """Return a measurement of a cell's last build; None if there is none."""
        try:
            return int(_content(self.root / "last" / f"{kernel}-{variant}.{what}"))
        except (OSError, ValueError):
            return None

    def set_last(self, kernel: str, variant: str, *, key: str, record: Mapping[str, Any]) -> None:
        """Remember the key and the record of a cell's last build."""
        path = self.root / "last" / f"{kernel}-{variant}.json"
        write_atomic(path, json_text.document({"key": key, "record": record}, indent=1, ordered=True).encode())

    def last(self, kernel: str, variant: str) -> Mapping[str, Any] | None:
        """Return the record of a cell's last build; None if it is unknown."""
        path = self.root / "last" / f"{kernel}-{variant}.json"
        try:
            found = _json(path)["record"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def touch(self, key: str) -> None:
        """Note that an entry was used, since the least recently used is removed first."""
        with contextlib.suppress(OSError):
            os.utime(self.root / "wheels" / key / _ENTRY)

    def log(self, kernel: str, variant: str) -> Path:
        """Return the path of a cell's newest log."""
        return self.root / "logs" / f"{kernel}-{variant}.log"

    def digest(self, path: Path) -> str:
        """Return the sha256 of a tool; it is cached as long as inode, size and times stay the same."""
        status = path.stat()
        seen = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
        name = f"digest-{status.st_dev}-{status.st_ino}"
        known = self.note(name)
        if known is not None and known.get("seen") == seen:
            return str(known["sha256"])
        value = sha256_of(path)
        # A file that changed just now may change again within one tick of the clock, unnoticed.
        if time.time_ns() - status.st_ctime_ns > _SETTLED_NS:
            self.set_note(name, {"seen": seen, "sha256": value})
        return value

    def note(self, name: str) -> Mapping[str, Any] | None:
        """Return the note `name`; None if it is missing, damaged, or written by a user whom the store distrusts."""
        path = self.root / "notes" / f"{name}.json"
        try:
            if self.stranger(path) is not None:
                return None
            found = _json(path)
            value, digest = found["value"], found["sha256"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return value if isinstance(value, dict) and digest == _digest_of(value) else None

    def set_note(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a note, which only saves time; a read-only store keeps none."""
        text = json_text.canonical({"value": value, "sha256": _digest_of(value)})
        with contextlib.suppress(OSError):
            write_atomic(self.root / "notes" / f"{name}.json", text.encode())


def _content(path: Path) -> bytes:
    """Read a file of the store; its path may hold anything."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"'{path.name}' is not a file")
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"'{path.name}' is larger than any that was stored")
    return content


def _json(path: Path) -> Any:
    return json.loads(_content(path).decode("utf-8"))


def _digest_of(value: Mapping[str, Any]) -> str:
    return sha256(json_text.canonical(value))


def _read(folder: Path) -> StoredWheel:
    entry = _json(folder / _ENTRY)
    name = str(entry["wheel"])
    wheel = folder / name
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"the name of its wheel is '{name}'")
    if not wheel.is_file() or wheel.is_symlink():
        raise ValueError("its wheel is not there, or is not a file")
    found = sha256_of(wheel)
    if found != entry["sha256"]:
        raise ValueError(f"the wheel is not the one that was stored: sha256 {found}, expected {entry['sha256']}")
    return StoredWheel(key=folder.name, wheel=wheel, sha256=found, record=entry["record"], report=entry["report"])
