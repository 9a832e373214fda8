"""Start a new kernel: a small one that builds, for a framework and its backends."""

from builder.init.answers import Answers
from builder.init.write import files, write

__all__ = ["Answers", "files", "write"]
