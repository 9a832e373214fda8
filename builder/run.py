"""Run a tool without a shell, keep what it says, and name it when it fails."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.errors import ToolError
from builder.terminal import safe

_PATIENCE = 0.5
"""Seconds between asking a tool to end and ending it."""
_TURN = 0.02
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of `ru_maxrss`: macOS counts bytes, Linux kibibytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A tool that ran: its exit code and what it wrote, both streams in order."""

    returncode: int
    output: str
    peak: int
    """Bytes of memory that the largest of its processes took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a tool that uses the network may take: a slow or endless server must not hold a build."""

    seconds: float
    memory: int
    """Bytes that one of its processes may allocate."""
    file: int
    """Bytes that a file it writes may have."""

    def hold(self, pid: int) -> None:
        """Hold a process and what it starts to the sizes, where the system can."""
        if sys.platform != "linux":
            return
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            for kind, size in ((resource.RLIMIT_DATA, self.memory), (resource.RLIMIT_FSIZE, self.file)):
                resource.prlimit(pid, kind, (size, size))


class Processes:
    """The tools that run for one command, so that all of them can be ended from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether everything was told to end."""
        return self._cancelled

    def cancel(self) -> None:
        """End every tool and refuse new ones."""
        with self._lock:
            self._cancelled = True
            running = tuple(self._running)
        kill_groups(running)

    def add(self, process: subprocess.Popen[str]) -> None:
        """Follow a process that has just started."""
        with self._lock:
            self._running.add(process)
            cancelled = self._cancelled
        if cancelled:
            kill_group(process)

    def remove(self, process: subprocess.Popen[str]) -> None:
        """Forget a process that has ended."""
        with self._lock:
            self._running.discard(process)


def run(
    argv: Sequence[str | Path],
    *,
    processes: Processes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    limits: Limits | None = None,
) -> Completed:
    """Run `argv` to its end, passing each line to `on_line` and the log as it comes.

    Raises:
        ToolError: the program cannot be started, or has run longer than `limits` allow.
    """
    command = [str(part) for part in argv]
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(
            f"cannot start '{command[0]}': {error.strerror}", help=f"install '{command[0]}' or put it on PATH"
        ) from error
    if processes is not None:
        processes.add(process)
    try:
        if limits is None:
            return _follow(process, log=log, on_line=on_line)
        limits.hold(process.pid)
        with _ended_after(limits.seconds, process):
            return _follow(process, log=log, on_line=on_line)
    finally:
        if processes is not None:
            processes.remove(process)


@contextlib.contextmanager
def _ended_after(seconds: float, process: subprocess.Popen[str]) -> Iterator[None]:
    """End a tool that is still running after `seconds`, and say so."""
    late = threading.Event()

    def end() -> None:
        late.set()
        kill_group(process)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        name = Path(str(process.args[0] if isinstance(process.args, list) else process.args)).name
        raise ToolError(f"'{name}' was stopped: it ran longer than {seconds:g} seconds", help="run the command again")


def _follow(process: subprocess.Popen[str], *, log: Path | None, on_line: Callable[[str], None] | None) -> Completed:
    lines: list[str] = []
    sink = log.open("a", encoding="utf-8") if log is not None else None
    try:
        for line in process.stdout or ():
            lines.append(line)
            if sink is not None:
                sink.write(safe(line))
            if on_line is not None:
                on_line(line.rstrip("\n"))
        peak = _wait(process)
    except BaseException:
        _signal(process, signal.SIGTERM)
        if not _ends_within(_PATIENCE, lambda: _reap(process, os.WNOHANG) is not None):
            _signal(process, signal.SIGKILL)
            _reap(process, 0)
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
        if sink is not None:
            sink.close()
    return Completed(returncode=process.returncode, output="".join(lines), peak=peak)


def _wait(process: subprocess.Popen[str]) -> int:
    """Wait for the end of a tool and return the memory of its largest process, in bytes."""
    usage = _reap(process, 0)
    return 0 if usage is None else usage * _RSS_UNIT


def _reap(process: subprocess.Popen[str], options: int) -> int | None:
    """Collect a child that has ended and return its `ru_maxrss`; None while it runs."""
    if process.returncode is not None:
        return 0
    pid, status, usage = os.wait4(process.pid, options)
    if pid == 0:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss


def kill_group(process: subprocess.Popen[str]) -> None:
    """End a tool and everything it started: ninja's compilers must not outlive an interrupted build.

    The thread that follows the tool collects it; this one only sends signals.
    """
    kill_groups((process,))


def kill_groups(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End several tools at once, all within the time that one is given."""
    for process in processes:
        _signal(process, signal.SIGTERM)
        _signal(process, signal.SIGCONT)  # one that is stopped ends only when it goes on
    if not _ends_within(_PATIENCE, lambda: all(process.returncode is not None for process in processes)):
        for process in processes:
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], sign: signal.Signals) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)


def _ends_within(seconds: float, ended: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(_TURN)
    return True
