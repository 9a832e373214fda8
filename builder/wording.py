"""Show a user's text safely, suggest corrections, and lay out lists."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

from builder import json_text

_LONGEST_SHOWN = 80
_LONGEST_GUESSED = 64
_SHORTEST_BEGINNING = 3
_ASCII_END = 0x7F
_LATIN_END = 0x9F
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_MINUTE, _HOUR = 60, 3600


def quoted(text: str) -> str:
    """Return `text` in quotes, shortened, and with control characters escaped so that it cannot drive a terminal."""
    if len(text) > _LONGEST_SHOWN:
        text = text[: _LONGEST_SHOWN - 1] + "…"
    return f"'{escaped(text)}'"


def escaped(text: str) -> str:
    """Replace the characters of `text` that cannot be shown by a printable spelling."""
    return text if text.isprintable() else "".join(map(visible, text))


def visible(character: str) -> str:
    """Return a printable spelling of one character."""
    if character.isprintable():
        return character
    if _ASCII_END <= ord(character) <= _LATIN_END:
        return f"\\u{ord(character):04x}"
    return json_text.line(character)[1:-1]


def nearest(word: str, among: Collection[str]) -> str | None:
    """Return the entry of `among` that `word` most likely misspells, the first of the closest, or None."""
    if len(word) > _LONGEST_GUESSED:
        return None
    folded = _fold(word)
    letters = set(folded)
    # A long word may differ by more letters.
    best, closest = None, min(3, 1 + len(folded) // 6) + 1
    for candidate in among:
        other, other_letters = _prepared(candidate)
        if abs(len(other) - len(folded)) >= closest or len(letters ^ other_letters) >= 2 * closest:
            continue
        distance = _distance(folded, other)
        if distance < closest:
            best, closest = candidate, distance
    if best is not None or len(folded) < _SHORTEST_BEGINNING:
        return best
    longer = [candidate for candidate in among if _prepared(candidate)[0].startswith(folded)]
    return longer[0] if len(longer) == 1 else None  # `repo` is the beginning of `repo-id`


def size(count: int) -> str:
    """Return a number of bytes in a unit that a person would use."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """Return a time in words that a person would use."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def listed(words: Iterable[str]) -> str:
    """Return the words in quotes, as a list in a sentence."""
    return ", ".join(f"'{word}'" for word in words)


def _fold(word: str) -> str:
    return word.lower().replace("_", "-")


@cache
def _prepared(candidate: str) -> tuple[str, frozenset[str]]:
    folded = _fold(candidate)
    return folded, frozenset(folded)


def _distance(first: str, second: str) -> int:
    """Return the number of letters to insert, remove, replace or swap with the next."""
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    while first and second and first[-1] == second[-1]:
        first, second = first[:-1], second[:-1]
    if not first or not second:
        return len(first) + len(second)
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first):
        following = [i + 1]
        for j, other in enumerate(second):
            cost = min(row[j + 1] + 1, following[j] + 1, row[j] + (letter != other))
            if i and j and letter == second[j - 1] and first[i - 1] == other:
                cost = min(cost, before[j - 1] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, in columns as wide as their widest entry."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def reasons_left_out(left_out: Mapping[str, str]) -> Iterator[str]:
    """Yield each reason once, with its kernels; `left_out` maps each kernel to its reason."""
    whose: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        whose.setdefault(reason, []).append(name)
    for reason, names in whose.items():
        yield f"left out, {reason}: {', '.join(names)}"
