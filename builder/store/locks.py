"""Locks of a store, on files that stay; and private directories, each with a lock next to it."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from builder.errors import BuilderError
from builder.files import is_at, lock
from builder.make.ninja_log import File

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
"""The errors if this user may not write to the store."""
_LOCK = ".lock"
"""The suffix of a private directory's lock."""


class StoppedError(BuilderError):
    """A time limit stopped the build; the finished files are kept, and the next build continues."""

    exit_code = 1
    files: tuple[File, ...] = ()
    """The files that were made before the stop."""


def open_lock(path: Path) -> int:
    """Open a lock for writing, as NFS needs, or for reading if another user owns it: `flock` accepts both."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if os.fstat(descriptor).st_uid == os.geteuid():
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o666)  # whatever the umask: a lock is empty, and others must be able to wait for it
    return descriptor


@contextlib.contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """Make a private directory in `root`; it is removed at the end of the context, or later by `sweep`.

    Its lock is made first and removed last, so that a directory always has one.
    """
    while True:
        descriptor, name = tempfile.mkstemp(prefix="b", suffix=_LOCK, dir=root)
        try:
            lock(descriptor)
            path = Path(name)
            if not is_at(descriptor, path):
                continue  # swept between the two lines: try another one
            try:
                path.with_suffix("").mkdir(mode=0o700)
                yield path.with_suffix("")
            finally:
                _remove(path.with_suffix(""), path)
            return
        finally:
            os.close(descriptor)


def sweep(root: Path) -> None:
    """Remove the private directories of dead processes, whose locks are free.

    A compiler that outlived its build may still be writing there; a directory that cannot be removed now is removed
    next time.
    """
    for path in root.glob(f"*{_LOCK}"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            continue  # its owner has just removed it
        try:
            if lock(descriptor, wait=False):
                _remove(path.with_suffix(""), path)
        finally:
            os.close(descriptor)


def _remove(folder: Path, path: Path) -> None:
    """Remove a private directory, then its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        path.unlink(missing_ok=True)
