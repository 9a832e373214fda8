"""Lock files, and write them whole or not at all."""

import contextlib
import fcntl
import glob
import os
import stat
from pathlib import Path
from typing import BinaryIO


def lock(descriptor: int, *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file until it is closed, alone or `shared` with others; return whether it is locked.

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
    """Write a file under a temporary name, flush it to the disk and rename it, so that it is never half-written.

    If several processes write the same path, the last one wins. With `like`, the file gets the permissions of that file
    and, if this user may change owners, its owner.
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
    """Remove the temporary files that killed processes left for `path`, but not the one that a process is writing now.

    Raises:
        OSError: a file cannot be removed.
    """
    for aside in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(FileNotFoundError), aside.open("r+b") as file:  # renamed or removed by its owner
            held = False
            with contextlib.suppress(OSError):  # a file system without locks: nobody can tell whose file it is
                held = lock(file.fileno(), wait=False)
            if held and is_at(file.fileno(), aside):  # else its owner renamed it meanwhile
                aside.unlink()


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether `path` still names this open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _held(aside: Path) -> BinaryIO:
    """Open a temporary file that `drop_unfinished` keeps until it is closed; the system closes it after a kill."""
    while True:
        file = os.fdopen(os.open(aside, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        with contextlib.suppress(OSError):  # on a file system without locks, `drop_unfinished` removes nothing
            lock(file.fileno())
        if is_at(file.fileno(), aside):
            return file
        file.close()  # another thread removed or renamed the file before it was locked


def flush_names(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
