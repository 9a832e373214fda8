"""Read untrusted text, with limits on its size, depth and characters."""

import json
import unicodedata
from collections.abc import Iterable

LARGEST_TEXT = 4 << 20
"""The largest file that describes others, such as RECORD, in bytes; real wheels have a few kilobytes."""
_DEEPEST = 32
_LONGEST_NAME, _LONGEST_PART = 1024, 255
_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of control characters, bidirectional and other format marks, surrogates and line separators."""


class UntrustedError(ValueError):
    """A text that exceeds a limit, or is not of its format; the message says why."""


def json_object(content: bytes) -> dict[str, object]:
    """Parse a JSON object that is safe to show, write and walk.

    Raises:
        UntrustedError: it is not a JSON object, is too large or too deep, or contains half of a surrogate pair.
    """
    if len(content) > LARGEST_TEXT:
        raise UntrustedError(f"it has {len(content)} bytes, and no more than {LARGEST_TEXT} are read")
    try:
        value = json.loads(content)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise UntrustedError(f"it is nested deeper than {_DEEPEST} levels") from None
    except UnicodeEncodeError:
        raise UntrustedError("it holds half of a surrogate pair, which is not a character") from None
    except ValueError as error:
        raise UntrustedError(f"it is not JSON: {str(error).splitlines()[0][:200]}") from None
    if not isinstance(value, dict):
        raise UntrustedError("it is not a JSON object")
    if _is_deep(value):
        raise UntrustedError(f"it is nested deeper than {_DEEPEST} levels")
    return value


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [each for outer in level for each in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def why_not_a_name(name: str) -> str | None:
    """Return why a path cannot be shown to a person or written to every file system; None if it can."""
    plain = name.isascii() and name.isprintable()  # nearly all names are
    if not plain and any(unicodedata.category(character) in _INVISIBLE for character in name):
        return "it has a character that cannot be seen, or that turns the direction of writing"
    encoded = name.encode()
    if len(encoded) > _LONGEST_NAME or any(len(part) > _LONGEST_PART for part in encoded.split(b"/")):
        return f"it is longer than file systems take: {_LONGEST_PART} bytes for a part, {_LONGEST_NAME} for all"
    return None


def merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Merge ranges (offset, size) into ordered ranges that do not overlap."""
    found: list[tuple[int, int]] = []
    for offset, size in sorted(ranges):
        if found and offset <= sum(found[-1]):
            start = found[-1][0]
            found[-1] = (start, max(sum(found[-1]), offset + size) - start)
        elif size > 0:
            found.append((offset, size))
    return tuple(found)
