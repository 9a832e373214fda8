"""The frameworks installed in the current environment, such as a container's torch, for builds without isolation."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from builder.errors import ToolError

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
        done = subprocess.run([chosen, "-c", _QUESTION], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise not_running(chosen, error) from error
    paths = {name: None if path is None else Path(path) for name, path in found.items()}
    return Current(python=chosen, **paths)


def not_running(python: Path, error: Exception) -> ToolError:
    """Return the error of a Python that was named and does not run."""
    absent = "there is no such file, and nothing of that name on PATH"
    why = absent if isinstance(error, FileNotFoundError) else str(error)
    return ToolError(f"'{python}' is not a Python that runs: {why}", help="name another one with --python")
