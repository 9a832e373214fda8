"""The process that imports a kernel: started for a wheel, or before there is one, to import the framework and wait."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from builder.loadtest.devices import hidden
from builder.loadtest.packages import LoadTestPackages
from builder.matrix import Cell
from builder.run import Processes
from builder.sandbox import SandboxPaths, enclose

_TIMEOUT = 300.0
_CHILD = Path(__file__).with_name("child.py")
_CLIENT = Path(__file__).with_name("kernel_client.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the process that imported a package reported, or how it ended before it did."""

    library: str | None = None
    """The loader's message, if it refused a library."""
    failure: Mapping[str, Any] | None = None
    """The exception of the import, and those that caused it."""
    ops: Mapping[str, tuple[str, ...]]
    died: str | None = None
    """How the process ended, if it reported nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a load test has of the machine; nothing of the kernel but where its package is, or will be."""

    package: Path
    """The unpacked Python package; its parent goes on the path."""
    cell: Cell
    """What the wheel is for."""
    python: Path
    """Interpreter of an environment that has the cell's framework."""
    runner: tuple[str, ...] = ()
    """What runs the interpreter, where that is for another processor."""
    libraries: tuple[Path, ...] = ()
    """Where the loader also looks, for stand-ins of a GPU's libraries."""
    bytecode: bool = False
    """Keep the bytecode of what is imported: compiling torch's takes half of the time of each test."""
    packages: LoadTestPackages = field(default_factory=LoadTestPackages)
    """What a user's environment has besides the framework."""
    visible: SandboxPaths | None = None
    """What it sees of the machine besides these; without one it sees all."""
    processes: Processes | None = None
    """Where its process is listed, to be ended with the build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLibrary:
    """A library of a package: its namespace of ops, and its file, where it is there."""

    ops: str
    file: Path | None
    module: str = "_ops"
    """The generated module that loads it."""
    exports: tuple[str, ...] = ()
    """The functions that a plain library exports."""

    def to_json(self) -> dict[str, Any]:
        """Spell it for the process."""
        file = None if self.file is None else str(self.file)
        return {"ops": self.ops, "file": file, "module": self.module, "exports": list(self.exports)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the process is asked of a package."""

    libraries: tuple[LoadedLibrary, ...]
    """The main library, and those of extensions."""
    key: str
    stand_in: bool = False
    """Whether something stands in for the libraries, which are not there yet."""

    def to_json(self) -> dict[str, Any]:
        """Spell it for the process."""
        libraries = [library.to_json() for library in self.libraries]
        return {"libraries": libraries, "key": self.key, "stand-in": self.stand_in}


def ask(setup: Setup, question: Question) -> Found:
    """Return what a fresh process tells."""
    with _Process.started(setup, question) as process:
        return process.found()


class Ahead:
    """A process that imports the framework before there is a wheel, and then waits for it."""

    def __init__(self, process: "_Process") -> None:
        self._process = process

    def ask(self, question: Question) -> Found | None:
        """Return what it tells; None where only a process that begins with the wheel can tell."""
        found = self._process.found(json.dumps(question.to_json()))
        return found if self._process.heard else None

    @property
    def waits(self) -> bool:
        """Whether it has imported the framework, or has ended: it needs no core until it is asked."""
        return self._process.waits

    def pause(self) -> None:
        """Leave its core to others."""
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run again."""
        self._process.signal(signal.SIGCONT)


@contextlib.contextmanager
def ahead(setup: Setup) -> Iterator[Ahead]:
    """Start a process that imports the framework and waits; it ends with the context."""
    with _Process.started(setup) as process:
        yield Ahead(process)


class _Process:
    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder

    @classmethod
    @contextlib.contextmanager
    def started(cls, setup: Setup, question: Question | None = None) -> Iterator["_Process"]:
        """Start the process with its question, or to wait for one; it ends with the context."""
        with TemporaryDirectory(prefix="builder-load-") as name:
            argv, env = _command(setup, question, Path(name)), _variables(setup)
            with _running(argv, env=env, waits=question is None, processes=setup.processes) as process:
                yield cls(process, Path(name))

    @property
    def heard(self) -> bool:
        """Whether it got to the question."""
        return (self._folder / "heard").is_file()

    @property
    def waits(self) -> bool:
        """Whether it has imported the framework, or has ended."""
        return (self._folder / "imported").is_file() or self._process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all that it started."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def found(self, question: str | None = None) -> Found:
        """Run the process to its end, or until everything of the build is told to end."""
        try:
            _, said = self._process.communicate(question, timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            return Found(ops={}, died=f"its import did not end within {_TIMEOUT:.0f} s")
        return _read(self._folder / "found.json", code=self._process.returncode, said=said)


@contextlib.contextmanager
def _running(
    argv: list[str], *, env: Mapping[str, str], waits: bool = False, processes: Processes | None
) -> Iterator["subprocess.Popen[str]"]:
    """Start a process, which may wait for its input; it ends with the context, or where all of the build is to end."""
    with subprocess.Popen(
        argv,
        env=env,
        cwd="/",
        stdin=subprocess.PIPE if waits else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        if processes is not None:
            processes.add(process)
        try:
            yield process
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if processes is not None:
                processes.remove(process)


def keep_bytecode(module: str, *, python: Path, visible: SandboxPaths, processes: Processes | None) -> None:
    """Import the framework by itself, only to make its bytecode; the load test reports what goes wrong."""
    env = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/tmp", **hidden()}  # noqa: S108  the sandbox has its own
    argv = enclose([str(python), "-c", f"import {module}"], visible)
    with (
        contextlib.suppress(OSError, subprocess.TimeoutExpired),
        _running(argv, env=env, processes=processes) as process,
    ):
        process.communicate(timeout=_TIMEOUT)


def _command(setup: Setup, question: Question | None, folder: Path) -> list[str]:
    """Return the command; in a sandbox it sees the package, whose folder is its home, and what it has besides."""
    package = setup.package
    if setup.packages.kernel_tree:
        shutil.copyfile(_CLIENT, folder / _CLIENT.name)
    request = {
        "module": package.name,
        "parent": str(package.parent),
        "folders": [str(each) for each in setup.packages.folders],
        "framework": str(setup.cell.framework),
        "of-one-python": setup.cell.python is not None,
        "standard": sorted(sys.stdlib_module_names),
        "depends": setup.packages.kernel_tree,
        "client": str(folder / _CLIENT.name),
        "result": str(folder / "found.json"),
        "imported": str(folder / "imported"),
        "heard": str(folder / "heard"),
        "question": None if question is None else question.to_json(),
    }
    argv = [*setup.runner, str(setup.python), "-c", _CHILD.read_text(encoding="utf-8"), json.dumps(request)]
    if setup.visible is None:
        return argv
    written = (package.parent, folder)
    return enclose(
        argv,
        setup.visible.with_more(
            readable=(*setup.packages.folders, *setup.packages.kernel_folders, *setup.libraries), writable=written
        ),
    )


def _variables(setup: Setup) -> dict[str, str]:
    env = {
        "PATH": os.defpath,
        "HOME": str(setup.package.parent),
        "LC_ALL": "C.UTF-8",
        **hidden(),
        **({} if setup.bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}),
    }
    if setup.libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, setup.libraries))
    return env


def _read(result: Path, *, code: int, said: str) -> Found:
    """Read what the process reported, or how it ended if it reported nothing."""
    told = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else None
    if told is None or not told["done"]:
        last = (said.strip().splitlines() or [""])[-1]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Found(ops={}, died=f"the process ended with {how}" + (f": {last}" if last else ""))
    ops = {name: tuple(keys) for name, keys in told["ops"].items()}
    return Found(library=told["library"], failure=told["failure"], ops=ops)
