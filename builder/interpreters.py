"""Find a Python that has pins; none is ever downloaded."""

import platform
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from builder.errors import ToolError
from builder.finders import Finders, uv_binary
from builder.pins import MissingPinsError, Pins, Requirement, dotted
from builder.run import run


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python on this machine, and its tag, such as `cp311`."""

    path: Path
    tag: str


def running() -> Interpreter | None:
    """Return the Python that runs this; None when no wheels of pins are for its kind."""
    threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    if platform.python_implementation() != "CPython" or threaded:
        return None
    return Interpreter(path=Path(sys.executable), tag=f"cp{sys.version_info.major}{sys.version_info.minor}")


def interpreter_for(
    pins: Pins, requirement: Requirement, *, finders: Finders, search: Callable[[str], Path | None] | None = None
) -> Interpreter:
    """Return a Python for which `requirement` is pinned: the running one, else the newest that is installed.

    `search` finds a Python by its tag in place of uv; who asks for many requirements remembers what was found.

    Raises:
        MissingPinsError: there are no pins for any Python.
        ToolError: there are, and none of these Pythons is on this machine.
    """
    pinned = pins.pinned_pythons(requirement)
    here = running()
    if here is not None and here.tag in pinned:
        return here
    if not pinned:
        pins.environment(requirement)
    for tag in reversed(pinned):
        path = find(tag, finders=finders) if search is None else search(tag)
        if path is not None:
            return Interpreter(path=path, tag=tag)
    versions = ", ".join(map(dotted, pinned))
    raise ToolError(
        f"no Python that has pins for {requirement} is on this machine: needs {versions}",
        help="install one of these, put it on PATH, or name it with --python",
    )


def find(tag: str, *, finders: Finders) -> Path | None:
    """Return an installed Python with this tag, if uv knows one."""
    argv = (uv_binary(), "python", "find", "--offline", "--no-project", "--system", dotted(tag))
    done = run(argv, cwd=Path("/"), env=finders.env)
    paths = (Path(line.strip()) for line in done.output.splitlines())  # warnings about broken ones stand between
    return next((path for path in paths if path.is_absolute() and path.is_file()), None)


__all__ = ["Interpreter", "MissingPinsError", "find", "interpreter_for", "running"]
