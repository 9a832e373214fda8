"""Start the process that imports a kernel; it may import the framework before there is a wheel."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from builder import json_text, run
from builder.errors import ToolError
from builder.loadtest.failures import hidden
from builder.loadtest.packages import LoadTestPackages
from builder.matrix import Cell
from builder.sandbox import SandboxPaths, enclose

_TIMEOUT = 300.0
_CHILD, _CLIENT = (Path(__file__).with_name(name) for name in ("child.py", "kernel_client.py"))
_RESULT = "found.json"
Question = Mapping[str, Any]
"""JSON for `child.py`: `libraries` of a package, the dispatch `key` of their ops, and whether to use a `stand-in`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The report of the process that imported a package, or how it ended without one."""

    library: str | None = None
    """The loader's message, if it refused a library."""
    failure: Mapping[str, Any] | None = None
    """The exception of the import, with its causes."""
    ops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    described: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The schema, dispatch keys and fake kernel of each op, where the question asks to `describe` them."""
    died: str | None = None
    """The end of the process in words, if it reported nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parts of the machine for a load test, and the path of the package, which may not exist yet."""

    package: Path
    """The unpacked Python package; its parent is added to the path."""
    cell: Cell
    """The cell of the wheel."""
    python: Path
    """The interpreter of an environment with the cell's framework."""
    runner: tuple[str, ...] = ()
    """The emulator for the interpreter, if that is for another processor."""
    libraries: tuple[Path, ...] = ()
    """Additional folders for the loader, with stand-ins for a GPU's libraries."""
    bytecode: bool = False
    """Whether to keep bytecode: compiling torch's takes half of each test's time."""
    packages: LoadTestPackages = field(default_factory=LoadTestPackages)
    """The packages of a user's environment other than the framework."""
    visible: SandboxPaths | None = None
    """The paths that the sandbox shows; None for no sandbox."""
    processes: run.Processes | None = None
    """The processes of the build, with which it is ended."""
    scratch: Path | None = None
    """The folder for the report: that of the build goes also when it is killed. None is one of the system."""


@dataclass(frozen=True, slots=True)
class LoadProcess:
    """A process that waits for the question of a load test."""

    setup: Setup
    process: run.Process
    folder: Path
    """The folder of its report."""

    def ask(self, question: Question) -> ImportReport:
        """Return its report after it has ended, or how it ended without one."""
        try:
            answer = run.answer_of(self.process, json_text.line(question).encode(), seconds=_TIMEOUT)
        except run.TooLongError:
            return ImportReport(died=f"its import did not end within {_TIMEOUT:.0f} s")
        result = self.folder / _RESULT
        told = json_text.read(result) if result.is_file() else None
        if told is None or not told["done"]:
            last = (answer.stderr.strip().splitlines() or [""])[-1]
            code = answer.returncode
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return ImportReport(died=f"the process ended with {how}" + (f": {last}" if last else ""))
        ops = {name: tuple(keys) for name, keys in told["ops"].items()}
        return ImportReport(library=told["library"], failure=told["failure"], ops=ops, described=told["described"])


@contextlib.contextmanager
def begun(setup: Setup, *, early: bool = False) -> Iterator[LoadProcess]:
    """Start a process, which imports the framework at once if it is `early`; it ends with the context."""
    env = {
        "PATH": os.defpath,
        "HOME": str(setup.package.parent),
        "LC_ALL": "C.UTF-8",
        **hidden(),
        **({} if setup.bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}),
    }
    if setup.libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, setup.libraries))
    with TemporaryDirectory(prefix="builder-load-", dir=setup.scratch) as name:
        command, others = _command(setup, Path(name), early=early), setup.processes
        with run.started(command, env=env, cwd=Path("/"), stdin=run.PIPE, processes=others) as process:
            yield LoadProcess(setup, process, Path(name))


def ask(setup: Setup, question: Question, *, early: LoadProcess | None = None) -> ImportReport:
    """Return the report of the `early` process if nothing failed there, or else that of a fresh process."""
    found = None if early is None else early.ask(question)
    if found is not None and (found.died, found.failure, found.library) == (None, None, None):
        return found
    with begun(setup) as process:
        return process.ask(question)


def keep_bytecode(module: str, *, python: Path, visible: SandboxPaths, processes: run.Processes | None) -> None:
    """Import the framework alone, to make its bytecode; the load test reports any failure."""
    env = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/tmp", **hidden()}  # noqa: S108  the sandbox has its own
    argv = enclose([str(python), "-c", f"import {module}"], visible)
    with contextlib.suppress(ToolError):
        run.ask(argv, env=env, cwd=Path("/"), processes=processes, seconds=_TIMEOUT)


def _command(setup: Setup, folder: Path, *, early: bool) -> list[str]:
    """Return the command; in a sandbox it sees the package, whose folder is its home, and its other files."""
    package, packages = setup.package, setup.packages
    if packages.kernel_tree:
        shutil.copyfile(_CLIENT, folder / _CLIENT.name)
    request = {
        "module": package.name,
        "parent": str(package.parent),
        "folders": [str(each) for each in packages.folders],
        "framework": str(setup.cell.framework),
        "of-one-python": setup.cell.python is not None,
        "standard": sorted(sys.stdlib_module_names),
        "depends": packages.kernel_tree,
        "client": str(folder / _CLIENT.name),
        "result": str(folder / _RESULT),
        "early": early,
    }
    argv = [*setup.runner, str(setup.python), "-c", _CHILD.read_text(encoding="utf-8"), json_text.line(request)]
    if setup.visible is None:
        return argv
    readable = (*packages.folders, *packages.kernel_folders, *setup.libraries)
    return enclose(argv, setup.visible.with_more(readable=readable, writable=(package.parent, folder)))
