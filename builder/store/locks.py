"""Locks of a store, on files that stay, and its private directories, each of which has a lock beside it."""

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
"""The errors of a store that this user may not write."""
_LOCK = ".lock"
"""The end of the name of a private directory's lock."""


class StoppedError(BuilderError):
    """A build was stopped by its time limit; what is finished is kept, and the next one goes on."""

    exit_code = 1
    files: tuple[File, ...] = ()
    """The files that were made before."""


def open_lock(path: Path) -> int:
    """Open a lock for writing, which NFS wants, or for reading where it is another user's: `flock` takes both."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if os.fstat(descriptor).st_uid == os.geteuid():
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o666)  # whatever the umask: a lock says nothing, and others must wait for it, too
    return descriptor


@contextlib.contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """Make a private directory in `root`; it is removed at the end of the context, or by a later `sweep`.

    Its lock is made first and removed last, so that a directory always has one.
    """
    while True:
        descriptor, name = tempfile.mkstemp(prefix="b", suffix=_LOCK, dir=root)
        try:
            lock(descriptor)
            path = Path(name)
            if not is_at(descriptor, path):
                continue  # swept between the two lines: another one
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

    A compiler that outlived its build may still write into one; what cannot be removed now goes next time.
    """
    for path in root.glob(f"*{_LOCK}"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            continue  # just removed by its owner
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
