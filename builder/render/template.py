"""The template environment: templates place values, and values reach a language only through its filter."""

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from builder import resources, templates, toml
from builder.render import quoting
from builder.render.arguments import Arguments
from builder.render.placed import PlacedEntry


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
