"""The Python packages that a config can name in `python-depends`."""

from functools import lru_cache
from typing import Any

from builder import _toml
from builder.resources import DATA


@lru_cache
def table() -> dict[str, Any]:
    """Return `dependencies.toml`."""
    return _toml.loads((DATA / "dependencies.toml").read_text(encoding="utf-8"))


def package(name: str) -> str:
    """Return the distribution on the package index that provides a dependency."""
    for names in table()["python"].values():
        if name in names:
            return str(names[name]["package"])
    raise KeyError(name)
