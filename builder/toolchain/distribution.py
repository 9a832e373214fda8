"""What installs a tool on this system: the names of packages differ between distributions."""

import functools
import platform
import sys
from collections.abc import Mapping
from typing import Any

from builder import resources, toml

_OURS = "run:"
"""What begins a whole command in the table, where no package manager is asked."""


@functools.cache
def _table() -> Mapping[str, Any]:
    return toml.loads((resources.DATA / "distributions.toml").read_text(encoding="utf-8"))


def release() -> Mapping[str, str]:
    """Return the fields of /etc/os-release; none if this system has no such file."""
    if sys.platform == "darwin":
        return {"ID": "macos"}
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def family(of: Mapping[str, str]) -> str | None:
    """Return the family of distributions of a system; None if it is unknown."""
    names = [of.get("ID", ""), *of.get("ID_LIKE", "").split()]
    families: Mapping[str, Mapping[str, Any]] = _table()["family"]
    return next((known for name in names for known, facts in families.items() if name in facts["ids"]), None)


def installing(*tools: str, of: Mapping[str, str] | None = None) -> str:
    """Return the command that installs tools on this system, or on the one that `of` describes.

    Where the distribution is unknown, or does not package one of them, the text says so.
    """
    known = family(release() if of is None else of)
    packages = [_table()["tool"][tool].get(known) for tool in tools]
    if known is None or None in packages:
        return f"install {' '.join(tools)}" + ("" if known is None else ", which this distribution does not package")
    whole = [package.removeprefix(_OURS) for package in packages if package.startswith(_OURS)]
    named = [package for package in packages if not package.startswith(_OURS)]
    commands = [*dict.fromkeys(whole)]
    if named:
        commands.append(" ".join((_table()["family"][known]["install"], *dict.fromkeys(named))))
    return " && ".join(commands)
