"""The pip of a Python, for the scripts beside: the installed one, else the one that ensurepip would install."""

import importlib.util
import sys
from pathlib import Path

_SHARED = Path("/usr/share/python-wheels")
"""Where Debian keeps what its ensurepip has elsewhere."""


def command() -> list[str]:
    """Return the command that runs pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip"]
    ensurepip = importlib.util.find_spec("ensurepip")
    bundled = [] if ensurepip is None or ensurepip.origin is None else [Path(ensurepip.origin).parent / "_bundled"]
    for folder in (*bundled, _SHARED):
        found = sorted(folder.glob("pip-*.whl"))
        if found:
            return [sys.executable, "-I", f"{found[-1]}/pip"]
    raise SystemExit(
        f"error: '{sys.executable}' has no pip\n  help: install it (python3-pip or python3-venv on Debian)"
    )
