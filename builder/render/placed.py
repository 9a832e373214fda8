"""Entries of `src` and `include` that are not in the project: in a foreign tree, or written by a step of the build."""

from typing import Any

from builder.kernel.source_globs import ListedPath
from builder.render import quoting

GENERATED = "${CMAKE_CURRENT_BINARY_DIR}/generated"
"""Where a build has what the steps of `[[generate]]` write."""


class PlacedEntry(ListedPath):
    """An entry as CMake has it between quotes: below a variable."""

    path: str
    source: str | None
    """The foreign source; None for what is generated."""

    def __new__(cls, path: str, *, source: str | None = None) -> "Any":
        """Spell a path that is inside the tree."""
        folder = GENERATED if source is None else f"${{{source}_SOURCE_DIR}}"
        spelled = str.__new__(cls, f"{folder}/{quoting.escaped(path)}")
        spelled.path, spelled.source = path, source
        spelled.listed = path if source is None else f"{source}:{path}"
        return spelled
