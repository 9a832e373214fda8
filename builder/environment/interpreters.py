"""Find a Python with pinned wheels; none is ever downloaded."""

import platform
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from builder.environment.indexes import Finders, uv_binary
from builder.errors import NotHereError
from builder.matrix.variant import dotted
from builder.pins import MissingPinsError, Pins, Requirement
from builder.run import Processes, run
from builder.toolchain.this_machine import ask_python

_QUESTION = """
import platform, sys, sysconfig
usual = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
print("cp%d%d" % sys.version_info[:2] if usual else "")
print(sys.executable)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python on this machine, and its tag, such as `cp311`."""

    path: Path
    tag: str


class NoPythonError(NotHereError):
    """No Python on this machine has pins for a cell; `versions` would have them."""

    def __init__(self, requirement: Requirement, *, versions: tuple[str, ...]) -> None:
        super().__init__(
            f"no Python that has pins for {requirement} is on this machine: needs {', '.join(versions)}",
            help=f"uv python install {versions[-1]}, or put one on PATH, or name it with --python",
        )
        self.versions = versions


def running() -> Interpreter | None:
    """Return the running Python; None if no wheels can be pinned for its kind."""
    threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    if platform.python_implementation() != "CPython" or threaded:
        return None
    return Interpreter(path=Path(sys.executable), tag=f"cp{sys.version_info.major}{sys.version_info.minor}")


def at_hand(preferred: Path | None) -> Interpreter | None:
    """Return the Python that a user names, or else the running one; None if no wheels can be pinned for its kind.

    Raises:
        ToolError: the named Python does not run.
    """
    if preferred is None:
        return running()
    # Its own absolute path, since the user may give a relative path or a name on PATH.
    tag, _, path = ask_python(preferred, "-I", "-c", _QUESTION).strip("\n").partition("\n")
    return Interpreter(path=Path(path), tag=tag) if tag else None


def interpreter_for(
    pins: Pins,
    requirement: Requirement,
    *,
    search: Callable[[str], Path | None],
    preferred: Path | None = None,
    only: str | None = None,
) -> Interpreter:
    """Return a Python for which `requirement` is pinned: `preferred`, the running one, or the newest installed one.

    With `only` it is the Python of this tag. `search` finds one by its tag, as `find` does: a caller with many
    requirements remembers what was found.

    Raises:
        MissingPinsError: there are no pins for any Python.
        NoPythonError: there are pins, but none of these Pythons is on this machine.
    """
    pinned = pins.pinned_pythons(requirement)
    if only is not None:
        if only not in pinned:
            raise MissingPinsError(
                f"no wheels are pinned for {requirement} with Python {dotted(only)}, the one that this cell is for"
            )
        pinned = (only,)
    for each in (at_hand(preferred), running()):
        if each is not None and each.tag in pinned:
            return each
    if not pinned:
        pins.environment(requirement)
    for tag in reversed(pinned):
        path = search(tag)
        if path is not None:
            return Interpreter(path=path, tag=tag)
    raise NoPythonError(requirement, versions=tuple(map(dotted, pinned)))


def find(tag: str, *, finders: Finders, processes: Processes | None = None) -> Path | None:
    """Return an installed Python with this tag, if uv knows one."""
    argv = (uv_binary(), "python", "find", "--offline", "--no-project", "--system", dotted(tag))
    done = run(argv, cwd=Path("/"), env=finders.env, processes=processes)
    paths = (Path(line.strip()) for line in done.output.splitlines())  # uv mixes in warnings about broken ones
    return next((path for path in paths if path.is_absolute() and path.is_file()), None)
