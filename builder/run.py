"""Run a program without a shell: follow a tool, ask a short question, or give it the terminal."""

import contextlib
import io
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
from typing import Any, BinaryIO, cast

from builder.errors import ToolError
from builder.terminal import safe

Process = subprocess.Popen[Any]
PIPE = subprocess.PIPE
_PATIENCE = 0.5
"""Seconds between SIGTERM and SIGKILL."""
_TURN = 0.02
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of `ru_maxrss`: macOS counts bytes, Linux kibibytes."""


class NotStartedError(ToolError):
    """A program that could not be started; the cause is the operating system's error."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(f"cannot start '{name}': {error.strerror}", help=f"install '{name}' or put it on PATH")
        self.reason = error.strerror or str(error)
        self.absent = isinstance(error, FileNotFoundError)


class TooLongError(ToolError):
    """A program that was stopped because it ran too long."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"'{name}' was stopped: it ran longer than {seconds:g} seconds", help="run the command again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A program that ended: its exit code and what it wrote to each stream."""

    returncode: int
    content: bytes
    """Its standard output."""
    errors: bytes

    @property
    def stdout(self) -> str:
        """Its standard output, as text."""
        return self.content.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Its standard error, as text."""
        return self.errors.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A tool that ran: its exit code and what it wrote, both streams in order."""

    returncode: int
    output: str
    peak: int
    """The memory of its largest process, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a tool that uses the network, so that a slow or endless server cannot block a build."""

    seconds: float
    memory: int
    """Bytes that each of its processes may allocate."""
    file: int
    """The largest file that it may write, in bytes."""

    def hold(self, pid: int) -> None:
        """Apply the size limits to a process and its children, if the system can."""
        if sys.platform != "linux":
            return
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            for kind, size in ((resource.RLIMIT_DATA, self.memory), (resource.RLIMIT_FSIZE, self.file)):
                resource.prlimit(pid, kind, (size, size))


class Processes:
    """The running tools of one command, which another thread can end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Process] = set()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """End every tool and refuse new ones."""
        with self._lock:
            self._cancelled = True
            running = tuple(self._running)
        kill_groups(running)

    def add(self, process: Process) -> None:
        """Register a process that has just started."""
        with self._lock:
            self._running.add(process)
            cancelled = self._cancelled
        if cancelled:
            kill_groups((process,))

    def remove(self, process: Process) -> None:
        """Forget a process that has ended."""
        with self._lock:
            self._running.discard(process)


@contextlib.contextmanager
def started(
    argv: Sequence[str | Path],
    *,
    processes: Processes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | BinaryIO = subprocess.DEVNULL,
    stdout: int | BinaryIO = PIPE,
    stderr: int | BinaryIO = PIPE,
    umask: int | None = None,
) -> Iterator[Process]:
    """Start a program in its own session, and end it with the context.

    Raises:
        NotStartedError: it cannot be started.
    """
    command = [str(part) for part in argv]
    try:
        process: Process = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            umask=-1 if umask is None else umask,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStartedError(command[0], error) from error
    with process:
        if processes is not None:
            processes.add(process)
        try:
            yield process
        finally:
            _signal(process, signal.SIGKILL)
            process.wait()
            if processes is not None:
                processes.remove(process)


def ask(
    argv: Sequence[str | Path],
    *,
    processes: Processes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
    umask: int | None = None,
    seconds: float | None = None,
) -> Answer:
    """Run a program to its end and return its output; with `stdout`, its standard output goes to that file instead.

    Raises:
        NotStartedError: it cannot be started.
        TooLongError: it ran for more than `seconds`, and was stopped together with its children.
    """
    with started(
        argv,
        processes=processes,
        cwd=cwd,
        env=env,
        stdin=stdin or subprocess.DEVNULL,
        stdout=stdout or PIPE,
        umask=umask,
    ) as process:
        return answer_of(process, seconds=seconds)


def answer_of(process: Process, question: bytes | None = None, *, seconds: float | None = None) -> Answer:
    """Give a program its standard input, wait for its end, and return what it wrote.

    Raises:
        TooLongError: it ran for more than `seconds`; the caller ends it.
    """
    try:
        content, errors = process.communicate(question, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TooLongError(_name_of(process), seconds or 0) from None
    except BaseException:
        _signal(process, signal.SIGTERM)
        ends_within(_PATIENCE, lambda: process.poll() is not None)
        raise
    return Answer(returncode=process.returncode, content=content or b"", errors=errors or b"")


def _name_of(process: Process) -> str:
    return Path(str(process.args[0] if isinstance(process.args, list) else process.args)).name


def foreground(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    owns_interrupt: bool = False,
) -> int:
    """Run a program on the terminal and return its exit code; with `owns_interrupt`, Ctrl-C reaches only that program.

    Raises:
        NotStartedError: it cannot be started.
    """
    command = [str(part) for part in argv]
    try:
        if not owns_interrupt:
            return subprocess.run(command, cwd=cwd, env=env, check=False).returncode
        process = subprocess.Popen(command, cwd=cwd, env=env)
    except OSError as error:
        raise NotStartedError(command[0], error) from error
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, before)


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
    """Run `argv` to its end, and pass each line of its output to `on_line` and to the log at once.

    Raises:
        ToolError: the program cannot be started, or has run longer than `limits` allow.
    """
    with started(argv, processes=processes, cwd=cwd, env=env, stderr=subprocess.STDOUT) as process:
        if limits is None:
            return _follow(process, log=log, on_line=on_line)
        limits.hold(process.pid)
        with _ended_after(limits.seconds, process):
            return _follow(process, log=log, on_line=on_line)


@contextlib.contextmanager
def _ended_after(seconds: float, process: Process) -> Iterator[None]:
    """End a tool that still runs after `seconds`, and raise the error."""
    late = threading.Event()

    def end() -> None:
        late.set()
        kill_groups((process,))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        raise TooLongError(_name_of(process), seconds)


def _follow(process: Process, *, log: Path | None, on_line: Callable[[str], None] | None) -> Completed:
    lines: list[str] = []
    said = io.TextIOWrapper(cast("BinaryIO", process.stdout), encoding="utf-8", errors="replace")
    with said, contextlib.ExitStack() as held:
        sink = None if log is None else held.enter_context(log.open("a", encoding="utf-8"))
        try:
            for line in said:
                lines.append(line)
                if sink is not None:
                    sink.write(safe(line))
                if on_line is not None:
                    on_line(line.rstrip("\n"))
            peak = _reap(process, 0) or 0
        except BaseException:
            _signal(process, signal.SIGTERM)
            if not ends_within(_PATIENCE, lambda: _reap(process, os.WNOHANG) is not None):
                _signal(process, signal.SIGKILL)
                _reap(process, 0)
            raise
    return Completed(returncode=process.returncode, output="".join(lines), peak=peak)


def _reap(process: Process, options: int) -> int | None:
    """Collect a child that has ended, and return the memory of its largest process in bytes; None while it runs."""
    if process.returncode is not None:
        return 0
    pid, status, usage = os.wait4(process.pid, options)
    if pid == 0:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * _RSS_UNIT


def kill_groups(processes: Sequence[Process]) -> None:
    """End several tools and their children at once: ninja's compilers must not outlive a build.

    The threads that follow the tools collect them; this one only sends signals.
    """
    for process in processes:
        _signal(process, signal.SIGTERM)
        _signal(process, signal.SIGCONT)  # a stopped process ends only after it continues
    if not ends_within(_PATIENCE, lambda: all(process.returncode is not None for process in processes)):
        for process in processes:
            _signal(process, signal.SIGKILL)


def _signal(process: Process, sign: signal.Signals) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)


def ends_within(seconds: float, ended: Callable[[], bool]) -> bool:
    """Wait at most `seconds` until `ended()`; return whether it did."""
    deadline = time.monotonic() + seconds
    while not ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(_TURN)
    return True
