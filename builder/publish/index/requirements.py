"""What a wheel requires, read once from its METADATA: a page and two indexes say it."""

from dataclasses import dataclass
from functools import lru_cache

from builder.untrusted import fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What must be there for a wheel."""

    python: str | None
    packages: tuple[str, ...]


@lru_cache(maxsize=1 << 17)
def read(core: bytes) -> Requirements:
    """Return what the METADATA of a wheel says that it requires."""
    found = fields(core)
    python = found["Requires-Python"]
    return Requirements(
        python=None if python is None else str(python),
        packages=tuple(map(str, found.get_all("Requires-Dist", []))),
    )
