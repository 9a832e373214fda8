"""Read TOML on every supported Python, and spell values in it."""

import sys

from builder import json_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError
loads = tomllib.loads

__all__ = ["TOMLDecodeError", "loads", "spelled"]


def spelled(value: str | list[str]) -> str:
    """Return a string, or a list of them, as a TOML value."""
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled, value)) + "]"
    return json_text.line(value, escaped=False).replace("\x7f", "\\u007f")
