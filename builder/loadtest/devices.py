"""Recognize a kernel that asks for a GPU while it is imported, on a machine without one: the facts of devices.toml."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from builder import toml
from builder.resources import DATA


@lru_cache
def _table() -> dict[str, Any]:
    return toml.loads((DATA / "devices.toml").read_text(encoding="utf-8"))


def hidden() -> Mapping[str, str]:
    """Return the variables that hide the devices of a machine, so that a test ends alike with and without them."""
    return dict(_table()["hidden"])


def asks_for_a_device(link: Mapping[str, Any]) -> bool:
    """Whether an exception means that there is no device, by its type and the module that raised it."""
    origin = link["origins"][-1] if link["origins"] else ""
    known = any(
        row["type"] in link["types"]
        and f"{origin}.".startswith(f"{row['origin']}.")
        and row.get("says", "") in link["text"]
        for row in _table()["absent"]
    )
    return known or (_is_of_the_loader(link) and lacks_a_driver(link["text"]))


def _is_of_the_loader(link: Mapping[str, Any]) -> bool:
    return "ImportError" in link["types"] or "OSError" in link["types"]


def lacks_a_driver(said: str) -> bool:
    """Whether the loader says that a library of a driver is missing."""
    return any(said.startswith(name) and "cannot open shared object" in said for name in _table()["library"]["driver"])
