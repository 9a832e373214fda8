"""The functions that a plain library exports, named by globs."""

import re
from collections.abc import Iterable
from fnmatch import translate

from builder.config.values import Text


class ExportGlob(Text):
    """A function of C that a library exports, or a glob of them, as in `cquantize_*`."""

    __slots__ = ()

    pattern = r"[A-Za-z_][A-Za-z0-9_*?]*"
    code = "B045"
    kind = "a name or a glob of functions of C"
    rule = "begin with a letter or '_', and use letters, digits, '_', '*' and '?', as in 'cquantize_*'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name in a declaration of C."""
        found = re.search(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(", text[:200], re.ASCII)
        return None if found is None else f"write '{found[1]}'"


def exported(names: Iterable[str], globs: Iterable[str]) -> frozenset[str]:
    """Return the names that one of the globs has."""
    wanted = re.compile("|".join(map(translate, globs)) or r"(?!)")  # one for all: fnmatch itself keeps only some
    return frozenset(name for name in names if wanted.match(name))
