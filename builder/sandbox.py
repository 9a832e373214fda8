"""Run a tool at the one path where every build happens, whatever the real one is."""

import subprocess
import sys
from functools import cache
from pathlib import Path

CANONICAL = Path("/tmp/builder")  # noqa: S108  exists on every machine and in Nix's sandbox; only a mount point
"""Where a build sees its scratch directory; the environment is mounted at `env` in it."""

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
def available() -> bool:
    """Whether the kernel lets this user mount in a namespace of his own."""
    if not sys.platform.startswith("linux") or not _mount_point():
        return False
    try:
        probe = subprocess.run(
            [*_unshare(), "mount", "--bind", str(CANONICAL), str(CANONICAL)],
            capture_output=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def _mount_point() -> bool:
    """Make the mount point; a link there could lead anywhere, so it is refused."""
    try:
        CANONICAL.mkdir(mode=0o755, exist_ok=True)
    except OSError:
        return False
    return not CANONICAL.is_symlink()


def _unshare() -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--mount", "--"]


def wrap(argv: list[str], *, scratch: Path, environment: Path | None) -> list[str]:
    """Return the command that runs `argv` with `scratch` at `CANONICAL` and `environment`, if any, at its `env`."""
    return [*_unshare(), "/bin/sh", "-c", _SCRIPT, "sh", str(scratch), str(environment or ""), str(CANONICAL), *argv]
