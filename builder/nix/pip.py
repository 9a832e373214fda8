"""Find a Python's pip and the user's settings for it, for the scripts in this folder, which run without `builder`."""

import importlib.util
import os
import sys
from pathlib import Path

_SHARED = Path("/usr/share/python-wheels")
"""The folder with Debian's wheels, which other Pythons have inside ensurepip."""
_OPTIONS = ["--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-input"]


def command() -> list[str]:
    """Return the command that runs pip: the installed one, or else the one in ensurepip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip", *_OPTIONS]
    ensurepip = importlib.util.find_spec("ensurepip")
    bundled = [] if ensurepip is None or ensurepip.origin is None else [Path(ensurepip.origin).parent / "_bundled"]
    for folder in (*bundled, _SHARED):
        found = sorted(folder.glob("pip-*.whl"))
        if found:
            return [sys.executable, "-I", f"{found[-1]}/pip", *_OPTIONS]
    raise SystemExit(
        f"error: '{sys.executable}' has no pip\n  help: install it (python3-pip or python3-venv on Debian)"
    )


def settings() -> dict[str, str]:
    """Return the variables for pip, with a certificate file if there is one."""
    # Nix sets missing variables to the empty text, which pip would take for a value.
    env = {name: value for name, value in os.environ.items() if value} | {"HOME": str(Path.cwd())}
    if not Path(env.get("PIP_CERT", "")).is_file():  # or a file outside of the sandbox
        env.pop("PIP_CERT", None)
        if env.get("certificates"):
            env["PIP_CERT"] = env["certificates"]
    return env
