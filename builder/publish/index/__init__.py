"""A static package index of wheels: what pip, uv and people read, as files."""

from builder.publish.index.site import Page, assemble, build, parts, settings
from builder.publish.index.workers import workers
from builder.publish.index.write import existing_uploads, existing_wheels, held, write

__all__ = [
    "Page",
    "assemble",
    "build",
    "existing_uploads",
    "existing_wheels",
    "held",
    "parts",
    "settings",
    "workers",
    "write",
]
