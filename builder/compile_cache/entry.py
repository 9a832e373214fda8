"""An entry of the cache: what ccache wants to have back, with a digest, and what is worth knowing of it."""

import json
from dataclasses import dataclass
from typing import Any

from builder import json_text
from builder.hashes import sha256

_LONGEST_HEADER = 4096
"""Bytes of the line before the value."""
_MAGIC, _RESULT = b"\xcc\xac", 0
"""How ccache's values begin, and their fourth byte where they hold what was compiled; else they list its headers."""


class DamagedError(ValueError):
    """Bytes that are no entry, or not the one that was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What ccache keeps under one key."""

    value: bytes
    seconds: float = 0.0
    """How long the compiler took."""
    writer: str = ""
    """The machine that compiled it."""

    @property
    def holds_object(self) -> bool:
        """Whether this is what was compiled, and not the list of what it depends on."""
        return self.value[:2] == _MAGIC and self.value[3:4] == bytes([_RESULT])

    def to_bytes(self, key: str) -> bytes:
        """Return the entry as it is kept under a key: a line of JSON, then the value."""
        header = {"sha256": _digest(key, self.value), "seconds": round(self.seconds, 3), "writer": self.writer}
        return json_text.canonical(header).encode() + b"\n" + self.value

    @classmethod
    def from_bytes(cls, content: bytes, key: str) -> "Entry":
        """Read what `to_bytes` wrote under a key.

        Raises:
            DamagedError: it is no entry, or its value is not the one that was written under this key.
        """
        end = content.find(b"\n", 0, _LONGEST_HEADER)
        try:
            header: Any = json.loads(content[: max(end, 0)])
            value = content[end + 1 :]
            if header["sha256"] != _digest(key, value):
                raise DamagedError("its value is not the one that was written")
            return cls(value=value, seconds=float(header["seconds"]), writer=str(header["writer"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DamagedError(f"it cannot be read: {error}") from error


def _digest(key: str, value: bytes) -> str:
    return sha256(f"{key}\n".encode() + value)
