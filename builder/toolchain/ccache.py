"""ccache, which keeps compiled files: the one that is installed with `builder`, or one of this machine."""

import sysconfig
from pathlib import Path

from builder.toolchain.tool import Search

_NAME = "ccache"
_NEEDED = "crsh-storage"
"""The feature that `builder` asks for: entries come over a socket. ccache has it since 4.13."""


def find(search: Search) -> Path | None:
    """Return the ccache to use, or None; CCACHE_DISABLE, ccache's own switch, says that there is none."""
    if search.environ.get("CCACHE_DISABLE"):
        return None
    installed = Path(sysconfig.get_path("scripts")) / _NAME
    for path in (installed, search.which(_NAME)):
        if path is not None and path.is_file() and fits(search, path):
            return path.resolve()
    return None


def fits(search: Search, program: Path) -> bool:
    """Whether a ccache can be told to take its entries from a socket."""
    return _NEEDED in search.run(program, "--version")
