"""The content-addressed store: an entry is complete or absent, locked while it is made, verified when it is used."""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.errors import BuilderError
from builder.toolchain import sha256_of
from builder.wheel import write_atomic

_ENTRY = "entry.json"


class StoreError(BuilderError):
    """The store cannot be used."""

    exit_code = 4


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
        """Make the directories and drop what dead builds left; return whether the store can be written."""
        try:
            for name in ("wheels", "locks", "logs", "last", "scratch"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            if (self.root / "wheels").is_dir():
                return False
            raise StoreError(
                f"cannot make a store at '{self.root}': {error.strerror}",
                help="free the disk, or name another place with --store or BUILDER_STORE",
            ) from error
        self._drop_scratch()
        return True

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
        """Add a wheel (file name, content) under `key`, replacing a damaged entry; all or nothing."""
        name, content = wheel
        aside = Path(tempfile.mkdtemp(prefix=f".{key[:16]}-", dir=self.root / "wheels"))
        target = self.root / "wheels" / key
        try:
            write_atomic(aside / name, content)
            entry = {"wheel": name, "sha256": sha256_of(aside / name), "record": record, "report": report}
            write_atomic(aside / _ENTRY, json.dumps(entry, sort_keys=True, indent=1).encode())
            aside.chmod(0o755)
            if target.exists():
                self.remove(key)
            aside.rename(target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return _read(target)

    def remove(self, key: str) -> None:
        """Take an entry out: renamed first, so that no reader sees half of it."""
        target = self.root / "wheels" / key
        trash = Path(tempfile.mkdtemp(prefix=".trash-", dir=self.root / "wheels"))
        with contextlib.suppress(FileNotFoundError):
            target.rename(trash / "entry")
        shutil.rmtree(trash, ignore_errors=True)

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
    def lock(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock `name`; yields whether it is held.

        The kernel drops it when a process dies, on this host or another: no lock is ever stale.
        """
        descriptor = os.open(self.root / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Give a private directory that is gone afterwards, also when this process was killed."""
        folder = Path(tempfile.mkdtemp(prefix="b", dir=self.root / "scratch"))
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)

    def _drop_scratch(self) -> None:
        """Remove the scratch directories whose build is dead: nobody holds their lock."""
        for folder in (self.root / "scratch").iterdir():
            try:
                descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue  # just being made, or just being removed
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            else:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)

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
        note = self.root / "last" / f"digest-{status.st_dev}-{status.st_ino}"
        with contextlib.suppress(OSError, ValueError):
            known, value = note.read_text(encoding="ascii").split()
            if known == seen:
                return value
        value = sha256_of(path)
        with contextlib.suppress(OSError):  # a read-only store remembers nothing
            write_atomic(note, f"{seen} {value}".encode())
        return value


def _read(folder: Path) -> Entry:
    entry = json.loads((folder / _ENTRY).read_text(encoding="utf-8"))
    wheel = folder / entry["wheel"]
    found = sha256_of(wheel)
    if found != entry["sha256"]:
        raise ValueError(f"the wheel is not the one that was stored: sha256 {found}, expected {entry['sha256']}")
    return Entry(key=folder.name, wheel=wheel, sha256=found, record=entry["record"], report=entry["report"])
