"""What remains for a person, each with the line that it comes from."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Remaining:
    """One thing to do by hand."""

    at: str
    """`file:line`; empty where no line asks for it."""
    text: str

    def __str__(self) -> str:
        return f"{self.at}: {self.text}" if self.at else self.text


@dataclass(frozen=True, slots=True)
class Todo:
    """A list that grows while a config is drafted; what is in it already is not added again."""

    items: dict[Remaining, None] = field(default_factory=dict)

    def add(self, text: str, *, at: str = "") -> None:
        """Add one thing to do."""
        self.items[Remaining(at, text)] = None

    def __iter__(self) -> Iterator[Remaining]:
        return iter(self.items)
