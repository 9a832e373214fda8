"""Write JSON on one line or as a document for people, and read it."""

import json
from pathlib import Path
from typing import Any


def line(value: object, *, escaped: bool = True) -> str:
    """Return JSON on one line; with `escaped`, characters beyond ASCII are escaped."""
    return json.dumps(value, ensure_ascii=escaped)


def canonical(value: object) -> str:
    """Return JSON on one line with sorted keys, so that equal values have equal digests."""
    return json.dumps(value, sort_keys=True)


def compact(value: object) -> str:
    """Return JSON on one line without spaces."""
    return json.dumps(value, separators=(",", ":"))


def document(value: object, *, indent: int = 2, ordered: bool = False, escaped: bool = True) -> str:
    """Return indented JSON with a final line break; `ordered` sorts keys, `escaped` escapes non-ASCII characters."""
    return json.dumps(value, indent=indent, sort_keys=ordered, ensure_ascii=escaped) + "\n"


def read(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON.
    """
    return json.loads(path.read_text(encoding="utf-8"))
