"""Locks of a store: `flock`s on files that stay; the system drops them when a process dies, here or on another host."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from builder.errors import BuilderError
from builder.make.ninja_log import File

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
"""What a store says that this user may not write."""
_TURN = 0.05
"""Seconds between two looks at a lock."""


class StoppedError(BuilderError):
    """A build was stopped by its time limit; what is finished is kept, and the next one goes on."""

    exit_code = 1
    files: tuple[File, ...] = ()
    """What was made before."""


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


def take(descriptor: int, *, wait: bool, give_up: Callable[[], bool] | None) -> None:
    """Hold an open lock alone.

    Raises:
        BlockingIOError: another process holds it, and this one does not `wait`.
        StoppedError: it gave up waiting.
    """
    while wait and give_up is not None:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if give_up():
            raise StoppedError("stopped while another process held a lock")
        time.sleep(_TURN)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
