"""The tables of a drafted config, and their text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from builder import toml

NOWHERE = "nowhere"
"""The origin of a value that a person must write."""
_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Found:
    """A value, with its origin."""

    value: str | int
    origin: str

    def __str__(self) -> str:
        origin = "".join(letter if letter.isprintable() else "?" for letter in self.origin)
        return f"{toml.spelled(self.value)} # {'not found: write it' if origin == NOWHERE else f'from {origin}'}"


Value = Found | str | int | tuple[str, ...] | Mapping[str, str | int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """A table of the config, with its keys in the order of writing."""

    name: str
    keys: Mapping[str, Value]
    """The keys; None and empty values are not written."""

    def __str__(self) -> str:
        return "".join(f"{_visible(line)}\n" for line in (f"[{self.name}]", *self._lines()))

    def _lines(self) -> Iterator[str]:
        for key, value in self.keys.items():
            match value:
                case _ if not value:
                    pass
                case Found():
                    yield f"{key} = {value}"
                case tuple():
                    yield from toml.array(key, value, width=_WIDTH)
                case _:
                    yield f"{key} = {toml.spelled(value)}"


def _visible(line: str) -> str:
    """Return a line with escapes of TOML for what an editor or a terminal would obey or hide."""
    return "".join(letter if letter.isprintable() else rf"\U{ord(letter):08x}" for letter in line)
