"""Write a static package index of wheels: files for pip, uv and people."""

from builder.publish.index.contents import Page, assemble, build, parts
from builder.publish.index.part import Settings
from builder.publish.index.write import existing, held, made_before, write

__all__ = ["Page", "Settings", "assemble", "build", "existing", "held", "made_before", "parts", "write"]
