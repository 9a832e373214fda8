"""Read TOML on every supported Python, and write its values."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builder import json_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError
loads = tomllib.loads

__all__ = ["TOMLDecodeError", "array", "facts", "key", "loads", "spelled"]


def facts(file: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a file of data as arguments of a dataclass: `_` for `-` in their keys, tuples for arrays."""
    return {
        name: {key.replace("-", "_"): tuple(each) if isinstance(each, list) else each for key, each in table.items()}
        for name, table in loads(file.read_text(encoding="utf-8")).items()
    }


def spelled(value: object) -> str:
    """Return a value on one line of TOML; a table becomes an inline table."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return json_text.line(value, escaped=False).replace("\x7f", "\\u007f")
        case Mapping():
            pairs = ", ".join(f"{key(name)} = {spelled(each)}" for name, each in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case Sequence():
            return "[" + ", ".join(map(spelled, value)) + "]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def key(name: str) -> str:
    """Return a key, with quotes if it needs them."""
    return name if name.isascii() and name.replace("-", "").replace("_", "").isalnum() else spelled(name)


def array(name: str, values: Sequence[str], *, width: int) -> Iterator[str]:
    """Yield the lines of a key with an array: one line if it fits into `width`."""
    line = f"{name} = {spelled(values)}"
    if len(line) <= width:
        yield line
        return
    yield f"{name} = ["
    yield from (f"  {spelled(value)}," for value in values)
    yield "]"
