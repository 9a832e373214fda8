"""Files: locked while they are used, written whole or not at all."""

import contextlib
import fcntl
import glob
import os
import stat
from pathlib import Path
from typing import BinaryIO


def lock(descriptor: int, *, wait: bool = True, shared: bool = False) -> bool:
    """Hold an open file alone, or with others that share it, until it is closed; return whether it is held.

    The system closes the files of a process that dies, on this host or another: no lock is ever stale.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def write_atomic(path: Path, content: bytes, *, flush: bool = True, like: os.stat_result | None = None) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it: it is there complete, or not at all.

    Several processes may write the same path at once: the last one stays. The file gets the permissions and, where this
    user may give files away, the owner of the one that it is `like`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with _held(aside) as file:
        try:
            file.truncate()
            if like is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode))
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), like.st_uid, like.st_gid)
            file.write(content)
            file.flush()
            if flush:
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
        with contextlib.suppress(FileNotFoundError), aside.open("r+b") as file:  # renamed or removed by its owner
            held = False
            with contextlib.suppress(OSError):  # a file system without locks: nobody can say whose it is
                held = lock(file.fileno(), wait=False)
            if held and is_at(file.fileno(), aside):  # else it was renamed in between, and this name is another file's
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
            lock(file.fileno())
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
