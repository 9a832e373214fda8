"""Processes that are killed before each change that they would make."""

import contextlib
import os
import signal
import sys
import traceback

from tests.paths import ROOT

_CHANGES = {"subprocess.Popen"} | {
    f"os.{name}" for name in ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate", "utime")
}


def before_each_change(act):
    """Run something again and again, and yield what it would have done next when it was killed.

    Each process is killed before it first changes a file, or starts a process, from a place of the code from which none
    before it was killed. The last one comes to its end.
    """
    places = set()
    while True:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run(act, places, writing)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            place = pipe.read()
        status = os.waitpid(child, 0)[1]
        assert status == (signal.SIGKILL if place else 0), status
        if not place:
            return
        places.add(place)
        yield place.partition(" ")[0]


def _run(act, places, writing):
    def hook(event, arguments):
        # A file that is only read is no change; some are opened by their descriptor.
        writes = event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in _CHANGES:
            stack = traceback.walk_stack(sys._getframe(1))  # noqa: SLF001  there is no other way to a frame
            own = (f"{frame.f_code.co_filename}:{line}" for frame, line in stack)
            place = f"{event} {next((line for line in own if line.startswith(f'{ROOT}/builder/')), '')}"
            if place not in places:
                os.write(writing, place.encode())
                os.kill(os.getpid(), signal.SIGKILL)

    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.addaudithook(hook)
    code = 1
    with contextlib.suppress(BaseException):
        code = act() or 0
    os._exit(code)
