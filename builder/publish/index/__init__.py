"""A static package index of wheels: what pip, uv and people read, as files."""

from builder.publish.index.contents import Page, build
from builder.publish.index.write import existing, held, write

__all__ = ["Page", "build", "existing", "held", "write"]
