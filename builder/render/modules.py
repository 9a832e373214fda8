"""The CMake modules that a rendered project includes, and those that they include."""

import posixpath
import re
from functools import lru_cache

from builder.resources import CMAKE

_FROM_LISTS = re.compile(r"^\s*include\(cmake/([a-z0-9_/]+\.cmake)\)$", re.MULTILINE)
_FROM_MODULE = re.compile(r'"\$\{CMAKE_CURRENT(?:_FUNCTION)?_LIST_DIR\}/([a-z0-9_./]+\.(?:cmake|cpp|py|txt))"')


def modules(lists: str) -> dict[str, bytes]:
    """Return the files, relative to `cmake/`, that a CMakeLists.txt needs."""
    found: dict[str, bytes] = {}
    pending = _FROM_LISTS.findall(lists)
    while pending:
        path = pending.pop()
        if path not in found:
            found[path] = _read(path)
            folder = posixpath.dirname(path)
            pending += (posixpath.normpath(posixpath.join(folder, other)) for other in _included(path))
    return found


@lru_cache
def _read(path: str) -> bytes:
    return (CMAKE / path).read_bytes()


@lru_cache
def _included(path: str) -> tuple[str, ...]:
    return tuple(_FROM_MODULE.findall(_read(path).decode("utf-8")))
