"""The template environment, and the CMake modules that a rendered project includes."""

import posixpath
import re
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from builder import resources, templates, toml
from builder.render import quoting
from builder.render.arguments import Arguments
from builder.render.sources import PlacedEntry
from builder.resources import CMAKE

_FROM_LISTS = re.compile(r"^\s*include\(cmake/([a-z0-9_/]+\.cmake)\)$", re.MULTILINE)
_FROM_MODULE = re.compile(r'"\$\{CMAKE_CURRENT(?:_FUNCTION)?_LIST_DIR\}/([a-z0-9_./]+\.(?:cmake|cpp|py|txt))"')


@lru_cache
def environment(root: Path = resources.TEMPLATES) -> Environment:
    """Return the Jinja environment; an undefined name is an error."""
    env = templates.environment(root)
    env.filters["cmake"] = quoting.cmake
    env.filters["cmake_arguments"] = cmake_arguments
    env.filters["toml"] = toml.spelled
    env.filters["python"] = quoting.python
    return env


def cmake_arguments(arguments: Arguments) -> str:
    """Return keyword arguments as lines of a call, each keyword with its values below it."""
    lines = []
    for keyword, values in arguments.items():
        if isinstance(values, str):
            lines.append(f"  {keyword} {quoting.cmake(values)}")
        elif values:
            lines.append(f"  {keyword}")
            lines.extend(f"    {' '.join(map(_argument, line))}" for line in values)
    return "\n".join(lines)


def _argument(text: str) -> str:
    return f'"{text}"' if isinstance(text, PlacedEntry) else quoting.cmake(text)


def cmake_modules(lists: str) -> dict[str, bytes]:
    """Return the files, relative to `cmake/`, that a CMakeLists.txt needs."""
    found: dict[str, bytes] = {}
    pending = _FROM_LISTS.findall(lists)
    while pending:
        path = pending.pop()
        if path not in found:
            found[path] = _read_module(path)
            folder = posixpath.dirname(path)
            pending += (posixpath.normpath(posixpath.join(folder, other)) for other in _included(path))
    return found


@lru_cache
def _read_module(path: str) -> bytes:
    return (CMAKE / path).read_bytes()


@lru_cache
def _included(path: str) -> tuple[str, ...]:
    return tuple(_FROM_MODULE.findall(_read_module(path).decode("utf-8")))
