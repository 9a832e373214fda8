"""Run a command in a sandbox of namespaces, or at least at the one path where every build happens."""

import sys
from functools import cache
from pathlib import Path

from builder.errors import ToolError
from builder.run import ask
from builder.sandbox.paths import SandboxPaths

__all__ = ["CANONICAL", "SandboxPaths", "can_mount", "enclose", "why_unavailable", "wrap"]

CANONICAL = Path("/tmp/builder")  # noqa: S108  exists on every machine and in Nix's sandbox; only a mount point
"""The path at which a build sees its scratch directory; the environment is mounted at `env` in it."""
_ENTER = Path(__file__).with_name("enter.py")
_PROBE_TIMEOUT = 10
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--")

# mount and exec, in a mount namespace of its own; the values are arguments, never part of the script.
_SCRIPT = """
set -e
mount --bind "$1" "$3"
if [ -n "$2" ]; then mount --bind "$2" "$3/env"; fi
cd "$3"
shift 3
exec "$@"
"""


@cache
def why_unavailable() -> str | None:
    """Return why no sandbox can be made here; None where one can."""
    if not sys.platform.startswith("linux"):
        return "sandboxes need the namespaces of Linux"
    try:
        probe = ask(enclose(["/bin/sh", "-c", ":"], SandboxPaths()), seconds=_PROBE_TIMEOUT)
    except ToolError as error:
        return error.message
    said = probe.stderr.strip().removeprefix("error: ")
    return None if probe.returncode == 0 else said.splitlines()[-1] if said else f"exit code {probe.returncode}"


def enclose(argv: list[str], visible: SandboxPaths) -> list[str]:
    """Return the command that runs `argv`, a path and its arguments, with the system's tools and `visible` alone."""
    # Isolated from the variables of the build, and without the packages of this interpreter.
    steps = [word for step in visible.plan() for word in step]
    return [sys.executable, "-I", "-S", str(_ENTER), *steps, "--", *argv]


@cache
def can_mount() -> bool:
    """Whether Linux lets this user mount in a user namespace."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        CANONICAL.mkdir(mode=0o755, exist_ok=True)
        if CANONICAL.is_symlink():  # it could lead anywhere
            return False
        probe = [*_UNSHARE, "mount", "--bind", str(CANONICAL), str(CANONICAL)]
        return ask(probe, seconds=_PROBE_TIMEOUT).returncode == 0
    except (OSError, ToolError):
        return False


def wrap(argv: list[str], *, scratch: Path, environment: Path | None) -> list[str]:
    """Return the command that runs `argv` with `scratch` at `CANONICAL` and `environment`, if any, at its `env`."""
    return [*_UNSHARE, "/bin/sh", "-c", _SCRIPT, "sh", str(scratch), str(environment or ""), str(CANONICAL), *argv]
