"""Where packages of Debian come from: a mirror that the user names, or those of apt where this machine is a Debian."""

import os
import shutil
from collections.abc import Mapping

from builder.errors import BuilderError, NotHereError, ToolError
from builder.run import ask
from builder.toolchain import distribution
from builder.wording import quoted

MIRROR = "BUILDER_DEBIAN_MIRROR"
"""Variable with the mirrors, with spaces between them: URLs or absolute paths of folders, each with a `pool`."""
_STARTS = ("http://", "https://", "/")


def mirrors(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the mirrors to ask, in order; none ends in a slash.

    Raises:
        BuilderError: the variable has something else.
        NotHereError: no mirror is known.
    """
    named = environ.get(MIRROR, "").split()
    for place in named:
        if not place.startswith(_STARTS):
            raise BuilderError(
                f"{MIRROR} has {quoted(place)}, which is no mirror",
                help="write URLs or absolute paths of folders that have Debian's 'pool', with spaces between them",
            )
    found = named or _of_apt(environ)
    if not found:
        raise NotHereError(
            "no mirror of Debian is known, and the pinned compilers are packages of Debian 12",
            help=f"name one: {MIRROR}=https://mirror.example.org/debian, or a folder with its 'pool'",
        )
    return tuple(dict.fromkeys(place.rstrip("/") for place in found))


def _of_apt(environ: Mapping[str, str]) -> list[str]:
    """Return what apt fetches packages from; nothing where it has none of Debian, as on Ubuntu."""
    if distribution.release().get("ID") != "debian":
        return []
    program = shutil.which("apt-get", path=environ.get("PATH", os.defpath))
    if program is None:
        return []
    try:
        argv = (program, "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
        done = ask(argv, env={**environ, "LC_ALL": "C"})
    except ToolError:
        return []
    if done.returncode != 0:
        return []
    return [line.removeprefix("file://") for line in done.stdout.split() if line.startswith((*_STARTS, "file:///"))]
