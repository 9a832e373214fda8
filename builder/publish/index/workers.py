"""Other processes for what takes the time of a large site: reading wheels, making pages, writing files."""

import contextlib
import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar

from builder.errors import ToolError

_FEW = 300
"""Wheels that are read sooner than other processes start."""
_OBJECTS = 1 << 17
"""New objects after which cycles are looked for: pages are many objects, and few of them are in one."""
_A = TypeVar("_A")
_B = TypeVar("_B")


class Map(Protocol):
    """A function like `map`: results come in the order of the values."""

    def __call__(self, function: Callable[[_A], _B], values: Iterable[_A], /) -> Iterator[_B]:
        """Return what a function makes of each value."""


@contextlib.contextmanager
def workers(wheels: int, *, processes: int | None = None) -> Iterator[Map]:
    """Yield a `map` that uses other processes, as many as there are cores; `map` itself for few wheels.

    Raises:
        ToolError: one of the processes was ended.
    """
    wanted = processes or (_cores() if wheels > _FEW else 1)
    if wanted == 1:
        yield map
        return
    with ProcessPoolExecutor(wanted, initializer=_begin) as pool:
        try:
            yield pool.map
        except BrokenProcessPool as error:
            raise ToolError(
                "one of the processes that make the index was ended by something else",
                help="see whether memory ran out, and run the command again",
            ) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _begin() -> None:
    """Leave Ctrl-C to the process that waits for this one, which says so once; look for cycles of objects rarely."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(_OBJECTS)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
