"""Let a load test import the framework where the compilers leave a core: its process stops where they leave none.

The scheduler would not do it: on many systems a process of another session gets as much time as all compilers together.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

_TURN = 0.1
"""Seconds from one look for a free core to the next."""


class SpareCore(Protocol):
    """A core that compilers may have, and leave now and then."""

    def take(self) -> bool:
        """Take it, if it is free: they have one less then."""

    def give_back(self) -> None:
        """Let them have it again, if it was taken."""


class Paced(Protocol):
    """A process that waits for something after its work."""

    @property
    def waits(self) -> bool:
        """Whether its work is done."""

    def pause(self) -> None:
        """Stop it."""

    def resume(self) -> None:
        """Let it go on."""


@contextlib.contextmanager
def paced(process: Paced, *, core: SpareCore, compiling: threading.Event, wanted: threading.Event) -> Iterator[None]:
    """Let a process run until there is something to compile, and then where a core is free, until it is wanted."""
    thread = threading.Thread(target=_pace, args=(process, core, compiling, wanted), daemon=True)
    thread.start()
    try:
        yield
    finally:
        wanted.set()
        thread.join()


def _pace(process: Paced, core: SpareCore, compiling: threading.Event, wanted: threading.Event) -> None:
    paused = was_free = False
    try:
        while not wanted.wait(_TURN) and not process.waits:
            if not compiling.is_set():
                continue
            free = core.take()
            if free and was_free:  # not just between two compilers
                process.resume()
                paused = False
                while not wanted.wait(_TURN) and not process.waits:
                    pass
                return
            core.give_back()
            was_free = free
            if not paused:
                process.pause()
                paused = True
    finally:
        if paused:
            process.resume()
        core.give_back()
