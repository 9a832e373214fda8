"""The frameworks installed in the current environment, such as a container's torch, for builds without isolation."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from builder.errors import ToolError
from builder.run import NotStartedError, ask

_QUESTION = """
import importlib.util, json, os, sys, sysconfig
packages = sysconfig.get_path("platlib")
def where(name):
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else os.path.dirname(os.path.dirname(spec.origin))
print(json.dumps({**{name: where(name) for name in ("torch", "tvm_ffi", "pytest")}, "packages": packages}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """An interpreter, and the folders that its frameworks and pytest are installed in."""

    python: Path
    torch: Path | None
    tvm_ffi: Path | None
    pytest: Path | None = None
    packages: Path | None = None
    """Where its packages are, whichever it has."""


def look(python: Path | None = None) -> Current:
    """Return where the frameworks of an interpreter are, by default the running one, without importing them.

    Raises:
        ToolError: the interpreter does not run.
    """
    chosen = Path(sys.executable) if python is None else python
    try:
        found = json.loads(ask_python(chosen, "-c", _QUESTION))
    except ValueError as error:
        raise _not_running(chosen, str(error)) from error
    paths = {name: None if path is None else Path(path) for name, path in found.items()}
    return Current(python=chosen, **paths)


def ask_python(python: Path, *arguments: str) -> str:
    """Return what a Python that a user named prints.

    Raises:
        ToolError: it does not run, or fails.
    """
    try:
        answer = ask([python, *arguments])
    except NotStartedError as error:
        absent = "there is no such file, and nothing of that name on PATH"
        raise _not_running(python, absent if error.absent else error.reason) from error
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines()
        raise _not_running(python, said[-1] if said else f"it ended with exit code {answer.returncode}")
    return answer.stdout


def _not_running(python: Path, why: str) -> ToolError:
    return ToolError(f"'{python}' is not a Python that runs: {why}", help="name another one with --python")
