"""Share cores and memory among all parallel builds: a cell starts when it fits."""

import contextlib
import os
import select
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from builder.config import Framework
from builder.matrix import Cell

GiB = 1 << 30
_DEFAULT_FILE_MEMORY = 0.5
"""GiB that a compiler is assumed to need for one file, until it is measured."""
_LEAST = 64 << 20
_TOKEN = b"+"
_TURN = 0.2
"""Seconds between a waiting cell's checks whether to give up."""


def file_memory(cell: Cell) -> int:
    """Return the expected memory of one compiler process of a cell, in bytes."""
    kind = "classic" if cell.framework is Framework.TORCH and cell.stable_abi is None else "stable"
    return int(cell.backend.facts.file_memory.get(kind, _DEFAULT_FILE_MEMORY) * GiB)


class Budget:
    """Memory that cells reserve before they start and release when they end.

    Cells that use the jobserver run, together, as many compilers as there are cores, and reserve that many times the
    memory of the largest compiler. A cell for which that is too much gets a fixed number of compilers.
    """

    def __init__(self, *, cores: int, memory: int) -> None:
        self._cores, self._memory = cores, memory
        self._changed = threading.Condition()
        self._running = 0
        self._own = 0
        """Bytes of the cells that have a number of compilers of their own."""
        self._sharing: list[int] = []
        """The memory that the largest compiler of each other cell needs."""

    @contextlib.contextmanager
    def admit(self, cell: Cell, *, alone: bool = False, learned: int | None = None) -> Iterator[int]:
        """Wait until the cell fits; yield how many compilers it may run: if as many as cores, the jobserver decides.

        A cell that is too large for the whole budget runs alone, one compiler at a time. `learned` is the memory of the
        largest compiler in an earlier build, in bytes.
        """
        need, cores, memory = max(learned or file_memory(cell), _LEAST), self._cores, self._memory
        shares = not alone and need * cores <= memory
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._running == 0 or (not alone and (self._free(need) >= 0 if shares else self._free() >= need))
                )
            )
            self._running += 1
            jobs, taken = cores, 0
            if shares:
                self._sharing.append(need)
            else:
                jobs = 1 if alone else max(1, self._free() // need)
                taken = max(need, memory) if alone else need * jobs
                self._own += taken
        try:
            yield jobs
        finally:
            with self._changed:
                if shares:
                    self._sharing.remove(need)
                self._own -= taken
                self._running -= 1
                self._changed.notify_all()

    def _free(self, *more: int) -> int:
        shared = max([*self._sharing, *more], default=0) * self._cores
        return self._memory - self._own - shared


class Jobserver:
    """The tokens of a GNU make jobserver, one for each core, which ninja 1.13 and nvcc understand.

    A process starts with its parent's token, and takes another one for each additional compiler. So a cell takes a
    token before it starts, and all cells together run as many compilers as there are cores.
    """

    def __init__(self, folder: Path, *, cores: int) -> None:
        self._left = contextlib.ExitStack()
        if len(str(folder).split()) > 1:  # words in MAKEFLAGS are separated by spaces, without quotes
            there = tempfile.gettempdir()
            base = there if len(there.split()) == 1 else "/tmp"  # noqa: S108  only the fifo is there, by itself
            folder = Path(self._left.enter_context(tempfile.TemporaryDirectory(prefix="builder-", dir=base)))
        self.path = folder / "jobserver"
        os.mkfifo(self.path, 0o600)
        # Opened for reading and writing, so that opening does not wait for the other end.
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        os.write(self._descriptor, _TOKEN * cores)
        self._cores = cores
        self._one_at_a_time = threading.Lock()
        self._spare = threading.Lock()
        self._holders = 0
        """Cells that have what they waited for; changed under `_counting`."""
        self._counting = threading.Lock()

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that tell a build about the jobserver; they change no byte."""
        return {"MAKEFLAGS": f" -j{self._cores} --jobserver-auth=fifo:{self.path}"}

    @contextlib.contextmanager
    def hold(self, tokens: int, *, give_up: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Take tokens, waiting for each; yield whether all were taken before `give_up` ended the wait."""
        held, counted = b"", 0
        try:
            with self._one_at_a_time:  # two cells that each hold half of what they need would wait for ever
                while len(held) < tokens and not give_up():
                    if self._holders == 0:  # no cell builds now: put back the tokens of killed compilers
                        self._take(self._cores)
                        os.write(self._descriptor, _TOKEN * (self._cores - len(held)))
                    select.select([self._descriptor], [], [], _TURN)
                    held += self._take(1)
                counted = 1
                self._count(counted)
            yield len(held) == tokens
        finally:
            os.write(self._descriptor, held)
            self._count(-counted)

    @contextlib.contextmanager
    def spare_core(self, *, allowed: bool = True) -> Iterator[bool]:
        """Yield whether a core is free for a process that is not a compiler; only one such process runs at a time."""
        token = self._take(1) if allowed else b""
        os.write(self._descriptor, token)  # ninja looks for a token only when a compiler ends
        free = token != b"" and self._spare.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._spare.release()

    def _take(self, most: int) -> bytes:
        try:
            return os.read(self._descriptor, most)
        except BlockingIOError:  # there is no token, or another process was faster
            return b""

    def _count(self, more: int) -> None:
        with self._counting:
            self._holders += more

    def close(self) -> None:
        """Remove the jobserver."""
        os.close(self._descriptor)
        self.path.unlink(missing_ok=True)
        self._left.close()
