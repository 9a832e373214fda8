"""Processes that are killed before each change that they would make."""

import contextlib
import os
import signal
import sys

_CHANGES = {"subprocess.Popen"} | {
    f"os.{name}" for name in ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate", "utime")
}


def before_each_change(act):
    """Run something again and again, and yield what it would have done next when it was killed.

    The first process is killed before it first changes a file or starts a process, the second before it does so a
    second time, and so on, until one comes to its end.
    """
    number, name = 0, "nothing yet"
    while name:
        number += 1
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run(act, number, writing)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            name = pipe.read()
        status = os.waitpid(child, 0)[1]
        assert status == (signal.SIGKILL if name else 0), status
        if name:
            yield name


def _run(act, number, writing):
    left = number

    def hook(event, arguments):
        nonlocal left
        # A file that is only read is no change; some are opened by their descriptor.
        writes = event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in _CHANGES:
            left -= 1
            if left == 0:
                os.write(writing, event.encode())
                os.kill(os.getpid(), signal.SIGKILL)

    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.addaudithook(hook)
    code = 1
    with contextlib.suppress(BaseException):
        code = act() or 0
    os._exit(code)
