"""Show a user's text safely, and guess what was meant."""

import difflib
import json
from collections.abc import Iterable

_LONGEST_SHOWN = 80
_LONGEST_GUESSED = 64
_ALIKE = 0.7


def quoted(text: str) -> str:
    """Return `text` in quotes, shortened, and with control characters escaped so that it cannot drive a terminal."""
    if len(text) > _LONGEST_SHOWN:
        text = text[: _LONGEST_SHOWN - 1] + "…"
    return "'" + "".join(visible(character) for character in text) + "'"


def visible(character: str) -> str:
    """Return a printable spelling of one character."""
    if character.isprintable():
        return character
    return json.dumps(character)[1:-1] if ord(character) < 0x7F or ord(character) > 0x9F else f"\\u{ord(character):04x}"  # noqa: PLR2004


def nearest(word: str, among: Iterable[str]) -> str | None:
    """Return the entry of `among` that looks like a misspelling of `word`."""
    if len(word) > _LONGEST_GUESSED:
        return None
    folded = {_fold(candidate): candidate for candidate in among}
    if _fold(word) in folded:
        return folded[_fold(word)]
    found = difflib.get_close_matches(_fold(word), folded, n=1, cutoff=_ALIKE)
    return folded[found[0]] if found else None


def listed(words: Iterable[str]) -> str:
    """Return the words in quotes, as a list to read."""
    return ", ".join(f"'{word}'" for word in words)


def _fold(word: str) -> str:
    return word.lower().replace("_", "-")
