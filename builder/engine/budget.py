"""One budget of cores and memory for all parallel builds: a cell starts when it fits."""

import contextlib
import os
import select
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from builder.config import Framework
from builder.matrix import Cell
from builder.plan.ask import Limits

GiB = 1 << 30
_DEFAULT_FILE_MEMORY = 0.5
"""GiB that a compiler is taken to need for one file where it was never measured."""
_LEAST = 64 << 20
_TOKEN = b"+"
_TURN = 0.2
"""Seconds after which a waiting cell looks whether it was told to give up."""


def file_memory(cell: Cell) -> int:
    """Return the bytes that one compiler process of a cell is expected to take."""
    kind = "classic" if cell.framework is Framework.TORCH and cell.stable_abi is None else "stable"
    return int(cell.backend.facts.file_memory.get(kind, _DEFAULT_FILE_MEMORY) * GiB)


class Budget:
    """Memory that cells reserve before they start and release when they end.

    Cells that ask the jobserver run, together, as many compilers as there are cores: they reserve that many times the
    memory of the largest one. A cell for which that is too much gets a fixed number of compilers of its own.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._running = 0
        self._own = 0
        """Bytes of the cells that have a number of compilers of their own."""
        self._sharing: list[int] = []
        """The memory that the largest compiler of each other cell needs."""

    @contextlib.contextmanager
    def admit(self, cell: Cell, *, alone: bool = False, learned: int | None = None) -> Iterator[int]:
        """Wait until the cell fits; yield how many compilers it may run, where all cores mean: by the jobserver.

        A cell that is too large for the whole budget runs alone, one compiler at a time. `learned` is what the largest
        compiler of an earlier build took, in bytes.
        """
        need = max(learned or file_memory(cell), _LEAST)
        with self._changed:
            self._changed.wait_for(lambda: self._running == 0 or (not alone and self._fits(need)))
            leave, jobs = self._enter(need, alone=alone)
            self._running += 1
        try:
            yield jobs
        finally:
            with self._changed:
                leave()
                self._running -= 1
                self._changed.notify_all()

    def _shares(self, need: int) -> bool:
        return need * self._limits.cores <= self._limits.memory

    def _free(self, *more: int) -> int:
        shared = max([*self._sharing, *more], default=0) * self._limits.cores
        return self._limits.memory - self._own - shared

    def _fits(self, need: int) -> bool:
        return self._free(need) >= 0 if self._shares(need) else self._free() >= need

    def _enter(self, need: int, *, alone: bool) -> tuple[Callable[[], None], int]:
        """Take the memory; return how to give it back, and the number of compilers."""
        if self._shares(need) and not alone:
            self._sharing.append(need)
            return lambda: self._sharing.remove(need), self._limits.cores
        jobs = 1 if alone else max(1, self._free() // need)
        taken = max(need, self._limits.memory) if alone else need * jobs
        self._own += taken
        return lambda: self._give_back(taken), jobs

    def _give_back(self, taken: int) -> None:
        self._own -= taken


class Jobserver:
    """The tokens of a GNU make jobserver, one for each core, which ninja 1.13 and nvcc understand.

    A process starts with the token of its parent, and takes one more for each further compiler. So a cell
    holds one before it starts, and the compilers of all cells are as many as there are cores.
    """

    def __init__(self, folder: Path, *, cores: int) -> None:
        self._left = contextlib.ExitStack()
        self.path = self._left.enter_context(_spelled_in_flags(folder)) / "jobserver"
        os.mkfifo(self.path, 0o600)
        # Open for both, so that opening does not wait for the other end.
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
        """The variables that name it to a build; they change no byte."""
        return {"MAKEFLAGS": f" -j{self._cores} --jobserver-auth=fifo:{self.path}"}

    @contextlib.contextmanager
    def hold(self, tokens: int, *, give_up: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Take tokens, waiting for each; yield whether all were taken before `give_up` ended the wait."""
        held, counted = b"", 0
        try:
            with self._one_at_a_time:  # two that have half of what they wait for would wait for ever
                while len(held) < tokens and not give_up():
                    self._replace_lost(but=len(held))
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
        """Yield whether a core is free for a process that is no compiler; there is one such process at a time."""
        token = self._take(1) if allowed else b""
        os.write(self._descriptor, token)  # ninja looks for one only when a compiler ends
        free = token != b"" and self._spare.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._spare.release()

    def _take(self, most: int) -> bytes:
        try:
            return os.read(self._descriptor, most)
        except BlockingIOError:  # there is none, or another was faster
            return b""

    def _count(self, more: int) -> None:
        with self._counting:
            self._holders += more

    def _replace_lost(self, *, but: int) -> None:
        """While no cell builds, put back the tokens that compilers had when they were killed."""
        if self._holders == 0:
            self._take(self._cores)
            os.write(self._descriptor, _TOKEN * (self._cores - but))

    def close(self) -> None:
        """Take the tokens away."""
        os.close(self._descriptor)
        self.path.unlink(missing_ok=True)
        self._left.close()


@contextlib.contextmanager
def _spelled_in_flags(folder: Path) -> Iterator[Path]:
    """Give `folder`, or one without a space in its path: MAKEFLAGS has spaces between its words, and quotes none."""
    if len(str(folder).split()) == 1:
        yield folder
        return
    there = tempfile.gettempdir()
    base = there if len(there.split()) == 1 else "/tmp"  # noqa: S108  only the fifo is there, in a folder of its own
    with tempfile.TemporaryDirectory(prefix="builder-", dir=base) as name:
        yield Path(name)
