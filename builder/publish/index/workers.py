"""Other processes for what takes the time of a large site: reading the wheels of each kernel, and making its pages."""

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from builder.errors import ToolError

_A = TypeVar("_A")
_B = TypeVar("_B")


def each(function: Callable[[_A], _B], values: Sequence[_A], *, processes: int | None = None) -> list[_B]:
    """Return what a function makes of each value, by as many processes as there are cores; one is this one.

    Raises:
        ToolError: one of the processes was ended.
    """
    count = processes or _cores()
    if count == 1:
        return list(map(function, values))
    # Ctrl-C is for the process that waits for the others: it says so once.
    with ProcessPoolExecutor(count, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            return list(pool.map(function, values))
        except BrokenProcessPool as error:
            raise ToolError(
                "one of the processes that make the index was ended by something else",
                help="see whether memory ran out, and run the command again",
            ) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
