"""The content-addressed store: an entry is complete or absent, locked while it is made, verified when it is used."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import scratch
from builder.errors import BuilderError
from builder.toolchain import sha256_of
from builder.wheel import write_atomic

_ENTRY = "entry.json"
_FOLDERS = ("wheels", "locks", "logs", "last", "notes", "scratch")
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_SURELY_DEAD = 3600.0
"""Seconds after which nobody is still writing a file of a few kilobytes."""
_SETTLED_NS = 2_000_000_000
_TURN = 0.05
"""Seconds between two looks at a lock."""


class StoreError(BuilderError):
    """The store cannot be used."""

    exit_code = 4


class StoppedError(BuilderError):
    """A build was stopped by its time limit; what is finished is kept, and the next one goes on."""

    exit_code = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A built wheel in the store."""

    key: str
    wheel: Path
    sha256: str
    record: Mapping[str, Any]
    """The build record whose digest is the key."""
    report: Mapping[str, Any]
    """What is worth knowing of the build and decides no bit: seconds, architectures, audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """An entry that was found damaged and taken out."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Store:
    """A directory that many processes and hosts share."""

    root: Path

    def prepare(self) -> bool:
        """Make the directories and drop what dead processes left; return whether the store can be written."""
        try:
            for name in _FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            if error.errno in _READ_ONLY and (self.root / "wheels").is_dir():
                return False
            raise StoreError(
                f"cannot make a store at '{self.root}': {error.strerror}",
                help="free the disk, or name another place with --store or BUILDER_STORE",
            ) from error
        scratch.sweep(self.root / "scratch")
        self._drop_leftovers()
        return True

    def _drop_leftovers(self) -> None:
        """Remove the halves of entries that killed processes left: nobody holds the lock of their key."""
        for path in (self.root / "wheels").glob(".*"):
            with self.lock(path.name[1:].partition("-")[0], wait=False) as held:
                if held:
                    shutil.rmtree(path, ignore_errors=True)
        for folder in ("last", "notes"):
            for path in (self.root / folder).glob(".*.part"):
                with contextlib.suppress(OSError):
                    if time.time() - path.stat().st_mtime > _SURELY_DEAD:
                        path.unlink()

    def find(self, key: str) -> Entry | Damaged | None:
        """Return the entry of `key` if it is there and its wheel is what it was; a damaged one is said."""
        folder = self.root / "wheels" / key
        if not folder.is_dir():
            return None
        try:
            return _read(folder)
        except (OSError, ValueError, KeyError, TypeError) as error:
            return Damaged(key=key, why=str(error))

    def put(self, key: str, wheel: tuple[str, bytes], *, record: Mapping[str, Any], report: Mapping[str, Any]) -> Entry:
        """Add a wheel (file name, content) under `key`, replacing a damaged entry; all or nothing.

        The caller holds the lock of the key.
        """
        name, content = wheel
        aside = self._aside(key)
        target = self.root / "wheels" / key
        try:
            write_atomic(aside / name, content)
            digest = hashlib.sha256(content).hexdigest()
            entry = {"wheel": name, "sha256": digest, "record": record, "report": report}
            write_atomic(aside / _ENTRY, json.dumps(entry, sort_keys=True, indent=1).encode())
            aside.chmod(0o755)
            _flush(aside)
            if target.exists():
                self.remove(key)
            aside.rename(target)
            _flush(target.parent)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return _read(target)

    def remove(self, key: str) -> None:
        """Take an entry out: renamed first, so that no reader sees half of it. The caller holds the lock of the key."""
        aside = self._aside(key)
        with contextlib.suppress(FileNotFoundError):
            (self.root / "wheels" / key).rename(aside / "entry")
        shutil.rmtree(aside, ignore_errors=True)

    def _aside(self, key: str) -> Path:
        """Make a folder that tells whose it is: when the lock of its key is free, its maker is dead."""
        return Path(tempfile.mkdtemp(prefix=f".{key}-", dir=self.root / "wheels"))

    def entries(self) -> Iterator[Entry | Damaged]:
        """Yield every entry, by key."""
        folder = self.root / "wheels"
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not path.name.startswith("."):
                found = self.find(path.name)
                if found is not None:
                    yield found

    @contextlib.contextmanager
    def use(self, name: str) -> Iterator[None]:
        """Keep what `name` locks from being removed while it is used; others may use it too."""
        try:
            descriptor = os.open(self.root / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            yield  # a read-only store: nobody removes anything
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def lock(self, name: str, *, wait: bool = True, give_up: Callable[[], bool] | None = None) -> Iterator[bool]:
        """Hold the lock `name`; yields whether it is held.

        The kernel drops it when a process dies, on this host or another: no lock is ever stale. One that waits
        looks now and then whether it should `give_up`: a thread that sleeps in the kernel hears no Ctrl-C.

        Raises:
            StoppedError: it gave up.
        """
        descriptor = os.open(self.root / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                _take(descriptor, wait=wait, give_up=give_up)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Give a private directory that is gone afterwards, also when this process is killed."""
        try:
            given = scratch.make(self.root / "scratch")
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
            with tempfile.TemporaryDirectory(prefix="builder-") as folder:
                yield Path(folder)
            return
        with given as folder:
            yield folder

    @contextlib.contextmanager
    def partial(self, key: str) -> Iterator[Path]:
        """Give the directory of a build that may be stopped and go on later; its caller holds the lock of `key`.

        It stays when the build is stopped, with all that the compilers finished, and goes when the build ends.
        """
        folder = self.root / "partial" / key
        folder.mkdir(parents=True, exist_ok=True)
        try:
            yield folder
        except StoppedError:
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)

    def has_partial(self, key: str) -> bool:
        """Whether a build of `key` was stopped and can go on."""
        return (self.root / "partial" / key).is_dir()

    def set_peak(self, kernel: str, variant: str, size: int) -> None:
        """Remember how many bytes the largest compiler of a cell took; the next build is admitted by it."""
        with contextlib.suppress(OSError):
            write_atomic(self.root / "last" / f"{kernel}-{variant}.peak", f"{size}\n".encode())

    def peak(self, kernel: str, variant: str) -> int | None:
        """Return the bytes that the largest compiler of a cell took, if a build has measured it."""
        try:
            return int((self.root / "last" / f"{kernel}-{variant}.peak").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def set_last(self, kernel: str, variant: str, *, key: str, record: Mapping[str, Any]) -> None:
        """Remember what the last build of a cell was made of."""
        path = self.root / "last" / f"{kernel}-{variant}.json"
        write_atomic(path, json.dumps({"key": key, "record": record}, sort_keys=True, indent=1).encode())

    def last(self, kernel: str, variant: str) -> Mapping[str, Any] | None:
        """Return the record of the last build of a cell, if one is known."""
        path = self.root / "last" / f"{kernel}-{variant}.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["record"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, dict) else None

    def touch(self, key: str) -> None:
        """Note that an entry was used, for those who remove the least recently used first."""
        with contextlib.suppress(OSError):
            os.utime(self.root / "wheels" / key / _ENTRY)

    def log(self, kernel: str, variant: str) -> Path:
        """Return where the log of a cell's newest build is."""
        return self.root / "logs" / f"{kernel}-{variant}.log"

    def digest(self, path: Path) -> str:
        """Return the sha256 of a tool, remembered as long as its inode, size and times stay."""
        status = path.stat()
        seen = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
        name = f"digest-{status.st_dev}-{status.st_ino}"
        known = self.note(name)
        if known is not None and known.get("seen") == seen:
            return str(known["sha256"])
        value = sha256_of(path)
        # What changed just now may change again within one tick of the clock, and look the same.
        if time.time_ns() - status.st_ctime_ns > _SETTLED_NS:
            self.set_note(name, {"seen": seen, "sha256": value})
        return value

    def note(self, name: str) -> Mapping[str, Any] | None:
        """Return what is remembered under `name`; what is damaged is forgotten."""
        try:
            found = json.loads((self.root / "notes" / f"{name}.json").read_text(encoding="utf-8"))
            value, digest = found["value"], found["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return value if isinstance(value, dict) and digest == _digest_of(value) else None

    def set_note(self, name: str, value: Mapping[str, Any]) -> None:
        """Remember something that is only a shortcut; a store that cannot be written remembers nothing."""
        text = json.dumps({"value": value, "sha256": _digest_of(value)}, sort_keys=True)
        with contextlib.suppress(OSError):
            write_atomic(self.root / "notes" / f"{name}.json", text.encode())


def _take(descriptor: int, *, wait: bool, give_up: Callable[[], bool] | None) -> None:
    while wait and give_up is not None:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if give_up():
            raise StoppedError("stopped while another process held a lock")
        time.sleep(_TURN)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _digest_of(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _flush(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(folder: Path) -> Entry:
    entry = json.loads((folder / _ENTRY).read_text(encoding="utf-8"))
    wheel = folder / entry["wheel"]
    found = sha256_of(wheel)
    if found != entry["sha256"]:
        raise ValueError(f"the wheel is not the one that was stored: sha256 {found}, expected {entry['sha256']}")
    return Entry(key=folder.name, wheel=wheel, sha256=found, record=entry["record"], report=entry["report"])
