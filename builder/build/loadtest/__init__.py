"""Load an unpacked wheel in a fresh process and look every op up under its dispatch key.

An import alone proves nothing: a library built for another torch can be imported and silently register nothing.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from builder.build.job import LoadTestPackages
from builder.build.loadtest import symbols
from builder.build.loadtest.devices import asks_for_a_device, hidden, lacks_a_driver
from builder.build.loadtest.outcome import SKIPPED, LoadError, LoadState, LoadTest
from builder.build.loadtest.packages import remedy as remedy_for
from builder.build.sandbox import Room, enclose
from builder.matrix import Cell
from builder.run import Processes

__all__ = ["SKIPPED", "LoadError", "LoadState", "LoadTest", "LoadTestPackages", "foresee", "keep_bytecode", "load"]

_TIMEOUT = 300.0
_CHILD = Path(__file__).with_name("child.py")
_KEEP = "'--load-test try' notes it and keeps the wheel"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the process that imported a package reported, or how it ended before it did."""

    library: str | None = None
    """The loader's message, if it refused the library."""
    failure: Mapping[str, Any] | None = None
    """The exception of the import, and those that caused it."""
    ops: Mapping[str, tuple[str, ...]]
    died: str | None = None
    """How the process ended, if it reported nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A package to import, and with what."""

    package: Path
    ops: str
    cell: Cell
    packages: LoadTestPackages

    @property
    def key(self) -> str:
        """The dispatch key of the backend."""
        return self.cell.backend.facts.dispatch_key

    @property
    def library(self) -> Path | None:
        """The kernel's library, under the name it has with Python's headers or the one without."""
        names = (f"{self.ops}.so", f"{self.ops}.abi3.so")
        return next((self.package / name for name in names if (self.package / name).is_file()), None)


def load(
    package: Path,
    *,
    ops: str,
    cell: Cell,
    python: Path,
    libraries: tuple[Path, ...] = (),
    bytecode: bool = False,
    packages: LoadTestPackages | None = None,
    room: Room | None = None,
    processes: Processes | None = None,
) -> LoadTest:
    """Load the library of `package` by itself, import the package with `python`, and look its ops up.

    Args:
        package: The unpacked Python package; its parent goes on the path.
        ops: The op namespace of the wheel.
        cell: What the wheel is for.
        python: Interpreter of an environment that has the cell's framework.
        libraries: Where the loader also looks, for stand-ins of a GPU's libraries.
        bytecode: Keep the bytecode of what is imported: compiling torch's takes half of the time of each test.
        packages: What a user's environment has besides the framework.
        room: What it sees of the machine besides these; without one it sees all.
        processes: Where its process is listed, to be ended with the build.
    """
    asked = _Asked(package=package, ops=ops, cell=cell, packages=packages or LoadTestPackages())
    found = _run(asked, python, libraries, bytecode=bytecode, room=room, processes=processes)
    return _judge(asked, found).with_packages(asked.packages.names)


def foresee(
    package: Path,
    *,
    ops: str,
    cell: Cell,
    python: Path,
    libraries: tuple[Path, ...] = (),
    bytecode: bool = False,
    packages: LoadTestPackages | None = None,
    room: Room | None = None,
    processes: Processes | None = None,
) -> LoadTest | None:
    """Import the sources of a package before its library exists; return a failure that compiling will not repair.

    Only a missing, undeclared module counts: the stand-in for the library may be the cause of anything else.
    """
    asked = _Asked(package=package, ops=ops, cell=cell, packages=packages or LoadTestPackages())
    found = _run(asked, python, libraries, bytecode=bytecode, stand_in=not cell.noarch, room=room, processes=processes)
    if found.failure is None or found.failure["used-stand-in"]:
        return None
    judged = _judge(asked, found)
    return judged.with_packages(asked.packages.names) if judged.outcome is LoadState.NOT_IMPORTABLE else None


def _judge(asked: _Asked, found: _Found) -> LoadTest:
    module = asked.package.name
    if found.died is not None:
        return _broken(asked, f"the built {module} does not load: {found.died}", found)
    if found.failure is None:
        return _judge_ops(asked, found)
    if found.library is not None and not lacks_a_driver(found.library):
        return _judge_library(asked, found, found.library)
    return _judge_failure(asked, found, found.failure["chain"])


def _judge_failure(asked: _Asked, found: _Found, chain: Sequence[Mapping[str, Any]]) -> LoadTest:
    """Judge the exception of an import, or the first of its causes that says more."""
    for link in chain:
        if asks_for_a_device(link):
            reason = f"{link['types'][0]}: {_first(link['text'])}"
            return LoadTest(outcome=LoadState.IMPORTED, ops=found.ops, reason=_placeless(asked, reason))
        if link["missing"] is not None:
            return _judge_missing(asked, found, str(link["missing"]))
    reason = f"the built {asked.package.name} does not load: "
    said = f"{chain[0]['types'][0]}: {_first(chain[0]['text'])}"
    undefined = symbols.explain(said)
    if undefined is None:
        return _broken(asked, reason + said, found)
    return LoadTest(outcome=LoadState.BROKEN, ops=found.ops, reason=reason + undefined.text, help=undefined.help)


def _broken(asked: _Asked, reason: str, found: _Found) -> LoadTest:
    details = _details(asked, found)
    return LoadTest(
        outcome=LoadState.BROKEN,
        ops=found.ops,
        reason=_placeless(asked, reason),
        details=details,
        help=f"correct what the last line names; {_KEEP}" if details else None,
    )


def _judge_library(asked: _Asked, found: _Found, said: str) -> LoadTest:
    """Report the loader's message about the library, which the package's own message may hide."""
    if lacks_a_driver(said):
        return LoadTest(outcome=LoadState.IMPORTED, ops=found.ops, reason=_placeless(asked, said))
    reason = f"the built {asked.package.name} does not load: "
    undefined = symbols.explain(said)
    if undefined is None:
        return LoadTest(
            outcome=LoadState.BROKEN, ops=found.ops, reason=_placeless(asked, reason + _first(said)), help=_KEEP
        )
    return LoadTest(outcome=LoadState.BROKEN, ops=found.ops, reason=reason + undefined.text, help=undefined.help)


def _judge_missing(asked: _Asked, found: _Found, missing: str) -> LoadTest:
    """Tell an undeclared module from a declared one that is not installed here."""
    module = asked.package.name
    if missing in asked.packages.absent:
        reason = f"the module '{missing}' is not here: {asked.packages.absent[missing]}"
        return LoadTest(outcome=LoadState.NOT_TESTED, ops=found.ops, reason=reason, module=missing)
    remedy = remedy_for(missing, package=asked.package, backend=asked.cell.backend)
    return LoadTest(
        outcome=LoadState.NOT_IMPORTABLE,
        ops=found.ops,
        reason=f"{module} cannot be imported: the module '{missing}' is not declared",
        details=_details(asked, found),
        help=f"{remedy}; {_KEEP}",
        module=missing,
    )


def _judge_ops(asked: _Asked, found: _Found) -> LoadTest:
    """Judge a package that was imported by the ops that are there."""
    module, ops = asked.package.name, found.ops
    if asked.cell.noarch:
        return LoadTest(outcome=LoadState.LOADED, ops=ops)
    if not ops:
        if found.library is not None:
            return _judge_library(asked, found, found.library)
        return LoadTest(
            outcome=LoadState.BROKEN,
            reason=f"the built {module} imports and registers no op in '{asked.ops}'",
            help="register the ops with TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) in a file of torch.src",
        )
    without = sorted(name for name, keys in ops.items() if not keys)
    if len(without) == len(ops):
        return LoadTest(
            outcome=LoadState.BROKEN,
            ops=ops,
            reason=f"no op of {module} has a kernel for {asked.key}: {', '.join(without)}",
            help=f"register them with TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, {asked.key}, ops)",
        )
    return LoadTest(outcome=LoadState.LOADED, ops=ops)


def keep_bytecode(module: str, *, python: Path, room: Room) -> None:
    """Import the framework by itself, only to make its bytecode; the load test reports what goes wrong."""
    env = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/tmp", **hidden()}  # noqa: S108  the sandbox has its own
    argv = enclose([str(python), "-c", f"import {module}"], room)
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, env=env, cwd="/", capture_output=True, check=False, timeout=_TIMEOUT)


def _enclosed(argv: list[str], asked: _Asked, libraries: tuple[Path, ...], *, folder: Path, room: Room) -> list[str]:
    """Return the command in a sandbox that shows the package, which is its home, and the packages of the test."""
    written = (asked.package.parent, folder)
    return enclose(argv, room.with_more(readable=(*asked.packages.folders, *libraries), writable=written))


def _run(
    asked: _Asked,
    python: Path,
    libraries: tuple[Path, ...],
    *,
    bytecode: bool,
    stand_in: bool = False,
    room: Room | None = None,
    processes: Processes | None = None,
) -> _Found:
    with TemporaryDirectory(prefix="builder-load-") as folder:
        result = Path(folder, "found.json")
        request = {
            "module": asked.package.name,
            "parent": str(asked.package.parent),
            "folders": [str(each) for each in asked.packages.folders],
            "library": None if asked.library is None else str(asked.library),
            "framework": str(asked.cell.framework),
            "ops": asked.ops,
            "key": asked.key,
            "stand-in": stand_in,
            "standard": sorted(sys.stdlib_module_names),
            "result": str(result),
        }
        argv = [str(python), "-c", _CHILD.read_text(encoding="utf-8"), json.dumps(request)]
        if room is not None:
            argv = _enclosed(argv, asked, libraries, folder=Path(folder), room=room)
        env = _variables(asked.package, libraries, bytecode=bytecode)
        try:
            done = _finish(argv, env, processes)
        except subprocess.TimeoutExpired:
            return _Found(ops={}, died=f"its import did not end within {_TIMEOUT:.0f} s")
        return _read(result, done)


def _finish(argv: list[str], env: Mapping[str, str], processes: Processes | None) -> "subprocess.CompletedProcess[str]":
    """Run the process to its end, or until everything of the build is told to end."""
    with subprocess.Popen(
        argv,
        env=env,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        if processes is not None:
            processes.add(process)
        try:
            output, said = process.communicate(timeout=_TIMEOUT)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            if processes is not None:
                processes.remove(process)
    return subprocess.CompletedProcess(argv, process.returncode, output, said)


def _read(result: Path, done: "subprocess.CompletedProcess[str]") -> _Found:
    """Read what the process reported, or how it ended if it reported nothing."""
    told = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else None
    if told is None or not told["done"]:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return _Found(ops={}, died=f"the process ended with {how}" + (f": {last}" if last else ""))
    ops = {name: tuple(keys) for name, keys in told["ops"].items()}
    return _Found(library=told["library"], failure=told["failure"], ops=ops)


def _variables(package: Path, libraries: tuple[Path, ...], *, bytecode: bool) -> dict[str, str]:
    env = {
        "PATH": os.defpath,
        "HOME": str(package.parent),
        "LC_ALL": "C.UTF-8",
        **hidden(),
        **({} if bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}),
    }
    if libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))
    return env


def _placeless(asked: _Asked, text: str) -> str:
    """Leave the folders of the test out of a text: they differ from one machine to the next."""
    for folder in (asked.package.parent, *asked.packages.folders):
        text = text.replace(f"{folder}/", "")
    return text


def _first(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]


def _details(asked: _Asked, found: _Found) -> str:
    """Return the end of what Python said of a failure, indented."""
    text = "" if found.failure is None else _placeless(asked, found.failure["text"])
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines()[-15:])
