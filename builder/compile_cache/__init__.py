"""Keep compiled files for later builds, and share them between machines; this module has the options."""

from dataclasses import dataclass
from enum import Enum

LOCAL = "store"
"""The name of the store's cache in reports."""


class Access(Enum):
    """The permission of a build to read from and write to a shared cache."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read-write"

    @property
    def reads(self) -> bool:
        """Whether entries are read from caches."""
        return self is not Access.WRITE

    @property
    def writes(self) -> bool:
        """Whether entries are written to the shared cache."""
        return self is not Access.READ


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """The options of the cache of compiled files."""

    url: str | None = None
    """The address of a cache that several machines share."""
    access: Access = Access.READ
    limit: int = 10 << 30
    """The most bytes that the store's cache may take."""
