"""Record a build while it runs: the time of each event, and the memory of its processes, which Linux tells."""

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from builder.engine.outcome import Event

_PROC = Path("/proc")
_PARENT, _RESIDENT = 1, 21
"""Fields of /proc/PID/stat after the program's name: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html."""
_SHORTEST = 0.25
"""The shortest pause between two looks at the memory, in seconds."""
_REST = 20
"""The pause is at least this many times as long as a look: with thousands of processes, a look takes long."""
_DENSITY = 1000
"""The pause is at least the time since the build began, divided by this: a long build has few samples, too."""

TimedEvent = tuple[float, Event]
"""Seconds since the build began, and an event at that time."""
TimedSize = tuple[float, int]
"""Seconds since the build began, and the bytes that its processes took at that time."""
Look = Callable[[], int]
"""Returns the bytes that are taken now; an `OSError` ends the measurement."""


def look() -> Look | None:
    """Return a function that measures the processes started by this one; None where the system does not tell."""
    if sys.platform != "linux" or not (_PROC / "self/stat").is_file():
        return None
    return lambda: resident(os.getpid())


def resident(pid: int, proc: Path = _PROC) -> int:
    """Return the resident bytes of all descendants of a process; a shared page counts in each of them."""
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


class Recorder:
    """Records the events of a build, which any thread may show, and its memory in a thread of its own."""

    def __init__(self, look: Look | None = None) -> None:
        self._look = look
        self._began = time.monotonic()
        self._events: list[TimedEvent] = []
        self._sizes: list[TimedSize] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @property
    def events(self) -> tuple[TimedEvent, ...]:
        """The events so far, in their order."""
        with self._lock:
            return tuple(self._events)

    @property
    def memory(self) -> tuple[TimedSize, ...] | None:
        """The memory so far; None where it is not measured."""
        return None if self._look is None else tuple(self._sizes)

    def show(self, event: Event) -> None:
        """Record an event."""
        with self._lock:
            self._events.append((self._now(), event))

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure the memory while a build runs."""
        if self._look is None:
            yield
            return
        thread = threading.Thread(target=self._measure, args=(self._look,), name="memory", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _measure(self, look: Look) -> None:
        pause = 0.0
        while not (self._sizes and self._ended.wait(pause)):  # at least one look, however short the build
            began = self._now()
            try:
                self._sizes.append((began, look()))
            except OSError:  # the samples so far remain
                return
            pause = max(_SHORTEST, _REST * (self._now() - began), began / _DENSITY)

    def _now(self) -> float:
        return time.monotonic() - self._began
