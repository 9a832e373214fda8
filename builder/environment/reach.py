"""Which package indexes are out of reach: each is asked once in a run, because its retries take seconds."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from builder.run import Completed

_UNREACHABLE = re.compile(r"dns error|tcp connect error|client error \(Connect\)")
_LONGEST = 20.0
"""Seconds that others wait for who asks first; an index that takes longer is one that sends something."""
_TURN = 0.1


def is_unreachable(said: str) -> bool:
    """Whether uv says that nothing could be asked: no address, no connection."""
    return _UNREACHABLE.search(said) is not None


@dataclass(slots=True)
class _Answer:
    failure: Completed | None = None
    over: threading.Event = field(default_factory=threading.Event)

    def wait(self, *, give_up: Callable[[], bool]) -> None:
        late = time.monotonic() + _LONGEST
        while not (self.over.wait(_TURN) or give_up() or time.monotonic() > late):
            pass


@dataclass(frozen=True, slots=True)
class Reach:
    """What came of asking each index, for all cells of a run; several threads may ask."""

    _answers: dict[str | None, _Answer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, index: str | None, run: Callable[[], Completed], *, give_up: Callable[[], bool]) -> Completed:
        """Run uv, unless somebody else has found, or finds just now, that the index is out of reach."""
        with self._lock:
            first = index not in self._answers
            answer = self._answers.setdefault(index, _Answer())
        if not first:
            answer.wait(give_up=give_up)
            return answer.failure or run()
        try:
            done = run()
            answer.failure = done if done.returncode != 0 and is_unreachable(done.output) else None
        finally:
            answer.over.set()
        return done
