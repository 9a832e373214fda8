"""The flags that every source of a backend gets: the facts of `data/compiler-flags.toml`."""

from functools import cache
from typing import Any

from builder import toml
from builder.config import Backend
from builder.resources import DATA


def of(backend: Backend, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags of a component: those of every source of its backend, and then its own."""
    return (*_table().get(backend.value, ()), *own)


@cache
def _table() -> dict[str, Any]:
    return toml.loads((DATA / "compiler-flags.toml").read_text(encoding="utf-8"))
