"""Record a build: the time of each event and, on Linux, the memory of its processes."""

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
"""The shortest pause between two memory measurements, in seconds."""
_REST = 20
"""The pause lasts at least this many times as long as a measurement, which is slow with thousands of processes."""
_DENSITY = 1000
"""The pause is at least the time since the start divided by this, so that a long build has few samples, too."""

TimedEvent = tuple[float, Event]
"""Seconds since the start of the build, and an event at that time."""
TimedSize = tuple[float, int]
"""Seconds since the start of the build, and the memory of its processes in bytes."""
Look = Callable[[], int]
"""Returns the memory in use, in bytes; an `OSError` ends the measurement."""


def look() -> Look | None:
    """Return a function that measures the memory of this process's children; None if the system does not tell."""
    if sys.platform != "linux" or not (_PROC / "self/stat").is_file():
        return None
    return lambda: resident(os.getpid())


def resident(pid: int, proc: Path = _PROC) -> int:
    """Return the resident memory of all descendants of a process, in bytes; a shared page counts in each."""
    sizes: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    with os.scandir(proc) as entries:
        numbers = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for number in numbers:
        with contextlib.suppress(OSError, ValueError, IndexError):  # the process has just ended
            fields = Path(f"{proc}/{number}/stat").read_bytes().rpartition(b")")[2].split()
            children[int(fields[_PARENT])].append(number)
            sizes[number] = int(fields[_RESIDENT])
    below = list(children[pid])
    for each in below:  # it grows
        below += children[each]
    return sum(sizes.get(each, 0) for each in below) * os.sysconf("SC_PAGE_SIZE")


class Recorder:
    """Records the events of a build, from any thread, and its memory, in a separate thread."""

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
        """The memory samples so far; None if memory is not measured."""
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
        while not (self._sizes and self._ended.wait(pause)):  # at least one measurement, even in a short build
            began = self._now()
            try:
                self._sizes.append((began, look()))
            except OSError:  # the samples so far stay
                return
            pause = max(_SHORTEST, _REST * (self._now() - began), began / _DENSITY)

    def _now(self) -> float:
        return time.monotonic() - self._began
