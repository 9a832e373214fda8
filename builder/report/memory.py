"""The memory that a build takes over time, as Linux tells it of the processes that the build has started."""

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TURN = 0.25
"""Seconds from one look to the next, in a short build."""
_REST = 20
"""How many times as long as a look takes there is none: where thousands of processes run, one takes long."""
_MOST = 2000
"""Samples from which on half of them are dropped, and the time between two is twice as long."""
_PARENT, _RESIDENT = 1, 21
"""Fields of /proc/PID/stat behind the name of the program: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html."""

Look = Callable[[], int]
"""Tells the bytes that are taken now; an `OSError` ends the looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySample:
    """What was taken at a moment."""

    at: float
    """Seconds since the build began."""
    size: int


def look() -> Look | None:
    """Return what looks at the processes that this one has started; None where the system does not tell."""
    if sys.platform != "linux" or not (_PROC / "self/stat").is_file():
        return None
    return lambda: resident(os.getpid())


def resident(pid: int, proc: Path = _PROC) -> int:
    """Return the resident bytes of all that a process has started; what several share counts in each."""
    sizes: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    with os.scandir(proc) as entries:
        numbers = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for number in numbers:
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            fields = Path(f"{proc}/{number}/stat").read_bytes().rpartition(b")")[2].split()
            children[int(fields[_PARENT])].append(number)
            sizes[number] = int(fields[_RESIDENT])
    below = list(children[pid])
    for each in below:  # it grows
        below += children[each]
    return sum(sizes.get(each, 0) for each in below) * os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Looks at the memory now and then, in a thread of its own."""

    def __init__(self, look: Look, clock: Callable[[], float]) -> None:
        self._look = look
        self._clock = clock
        self._samples: list[MemorySample] = []
        self._ended = threading.Event()

    @property
    def samples(self) -> tuple[MemorySample, ...]:
        """What was seen so far."""
        return tuple(self._samples)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Look while the context lasts."""
        thread = threading.Thread(target=self._run, name="memory", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        turn = _TURN
        while True:
            began = time.monotonic()
            try:
                self._samples.append(MemorySample(at=self._clock(), size=self._look()))
            except OSError:  # it may not look any more: what was seen so far is shown
                return
            if len(self._samples) >= _MOST:
                self._samples = thinned(self._samples)
                turn *= 2
            if self._ended.wait(max(turn, _REST * (time.monotonic() - began))):
                return


def thinned(samples: list[MemorySample]) -> list[MemorySample]:
    """Return half as many samples: of each two, the larger."""
    pairs = (samples[number : number + 2] for number in range(0, len(samples), 2))
    return [max(pair, key=lambda sample: sample.size) for pair in pairs]
