"""A static package index of wheels: what pip, uv and people read, as files."""

from builder.publish.index.site import Page, build
from builder.publish.index.write import existing_wheels, write

__all__ = ["Page", "build", "existing_wheels", "write"]
