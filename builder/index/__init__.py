"""A static package index of wheels: what pip, uv and people read, as files."""

from builder.index.site import Page, build
from builder.index.write import existing_wheels, write

__all__ = ["Page", "build", "existing_wheels", "write"]
