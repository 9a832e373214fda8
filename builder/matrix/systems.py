"""The systems that cells are built for: the tables of `data/systems.toml`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from builder import toml
from builder.resources import DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A system that cells are built for."""

    platforms: re.Pattern[str]
    """The platform tags of wheels that run there."""
    uv: str
    """What uv calls it."""
    triple: str | None = None
    """What GNU compilers for it are named by; None where nothing is compiled for it on another system."""

    def runs(self, file: str) -> bool:
        """Whether the wheel of a file name can be installed there."""
        tags = file.removesuffix(".whl").rpartition("-")[2].split(".")
        return any(self.platforms.fullmatch(tag) for tag in tags)


@cache
def built() -> Mapping[str, Built]:
    """Return every system that cells are built for, by its name."""
    tables = toml.loads((DATA / "systems.toml").read_text(encoding="utf-8"))
    return {
        name: Built(platforms=re.compile(f"any|{given['platforms']}"), uv=given["uv"], triple=given.get("triple"))
        for name, given in tables.items()
    }
