"""The texts of a kernel's license: files of its folder that its wheels have, as most licenses ask for."""

import re
from collections.abc import Iterable

from builder.kernel.tree import Tree

_NAME = re.compile(r"(LICEN[CS]E|License|COPYING|COPYRIGHT|NOTICE|AUTHORS)([._-][A-Za-z0-9._-]*)?")
"""Also in `builder/nix/sources.nix`; a test compares the two."""


def find(tree: Tree) -> tuple[str, ...]:
    """Return the names of the license files in the folder of a kernel, sorted; links are none."""
    return among(tree.plain_files(""))


def among(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that are license files, sorted."""
    return tuple(sorted(path for path in paths if _NAME.fullmatch(path)))
