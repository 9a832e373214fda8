"""The text of JSON: in one line, or as a document for people."""

import json
from pathlib import Path
from typing import Any


def line(value: object, *, escaped: bool = True) -> str:
    """Return JSON in one line; characters beyond ASCII are `escaped`."""
    return json.dumps(value, ensure_ascii=escaped)


def canonical(value: object) -> str:
    """Return JSON in one line with its keys in order: one text for one value, as digests need it."""
    return json.dumps(value, sort_keys=True)


def compact(value: object) -> str:
    """Return JSON in one line without any space."""
    return json.dumps(value, separators=(",", ":"))


def document(value: object, *, indent: int = 2, ordered: bool = False, escaped: bool = True) -> str:
    """Return JSON in lines with a line break at the end; keys may be in order, characters beyond ASCII `escaped`."""
    return json.dumps(value, indent=indent, sort_keys=ordered, ensure_ascii=escaped) + "\n"


def read(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON.
    """
    return json.loads(path.read_text(encoding="utf-8"))
