"""Files: written whole or not at all, and digested."""

import contextlib
import fcntl
import glob
import hashlib
import os
from pathlib import Path
from typing import BinaryIO


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it: it is there complete, or not at all.

    Several processes may write the same path at once: the last one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with _held(aside) as file:
        try:
            file.truncate()
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


def drop_unfinished(path: Path) -> None:
    """Remove what killed processes left of `path`; what a living one is writing stays.

    Raises:
        OSError: one cannot be removed.
    """
    for aside in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # renamed or removed by its owner
            _drop_if_free(aside)


def _drop_if_free(aside: Path) -> None:
    with aside.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # held by its owner, or a filesystem without locks
        if is_at(file.fileno(), aside):  # else it was renamed in between, and this name is another file's
            aside.unlink()


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _held(aside: Path) -> BinaryIO:
    """Open a file that `drop_unfinished` leaves alone until it is closed; the system closes it for a killed process."""
    while True:
        file = os.fdopen(os.open(aside, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        with contextlib.suppress(OSError):  # a filesystem without locks: nothing is removed there either
            fcntl.flock(file, fcntl.LOCK_EX)
        if is_at(file.fileno(), aside):
            return file
        file.close()  # removed, or renamed by another thread, before it was held


def flush_names(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
