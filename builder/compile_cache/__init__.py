"""Keep compiled files for later builds, and share them between machines; this module says who may do what."""

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
