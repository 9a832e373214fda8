"""Private directories that are removed after their process ended, however it ended."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from builder.files import is_at

_LOCK = ".lock"


def make(root: Path) -> AbstractContextManager[Path]:
    """Make a private directory in `root` now; it is removed at the end of the context.

    Its lock lies beside it and is made first and removed last, so that a directory always has one.
    """
    while True:
        descriptor, name = tempfile.mkstemp(prefix="b", suffix=_LOCK, dir=root)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        lock = Path(name)
        if is_at(descriptor, lock):
            try:
                lock.with_suffix("").mkdir(mode=0o700)
            except OSError:
                lock.unlink()
                os.close(descriptor)
                raise
            return _given(lock.with_suffix(""), lock, descriptor)
        os.close(descriptor)  # swept between the two lines: another one


@contextlib.contextmanager
def _given(folder: Path, lock: Path, descriptor: int) -> Iterator[Path]:
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            lock.unlink(missing_ok=True)
        os.close(descriptor)


def sweep(root: Path) -> None:
    """Remove the directories of dead processes, whose locks are free.

    A compiler that outlived its build may still write into one; what cannot be removed now goes next time.
    """
    for lock in root.glob(f"*{_LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDWR)
        except OSError:
            continue  # just removed by its owner
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            folder = lock.with_suffix("")
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
