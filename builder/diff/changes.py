"""The changes between two builds, as text, Markdown and JSON."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from builder import codec
from builder.wording import columns, escaped

_LONGEST = 100
_SHOWN = 20
"""The most changes of a part that break nothing and that people are shown; JSON has all of them."""
_ABSENT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """A fact that differs between two builds."""

    part: str
    """The part of the build: `ops`, `Python API`, `device code`, `library` or `identity`."""
    subject: str
    """The op, the function, the library or the field."""
    before: str = ""
    """Empty where there was nothing."""
    after: str = ""
    """Empty where there is nothing any more."""
    breaks: str = ""
    """Why it breaks what the versions promise; empty where it does not."""

    @property
    def breaking(self) -> bool:
        """Whether it breaks what the versions promise."""
        return bool(self.breaks)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDifference:
    """The changes of one variant."""

    variant: str
    before: str
    """The name of the first wheel; empty for a variant that is new."""
    after: str
    """The name of the second wheel; empty for a variant that is lost."""
    changes: tuple[FactChange, ...] = ()
    notes: tuple[str, ...] = ()
    """The parts that could not be compared, and why."""

    @property
    def breaking(self) -> bool:
        """Whether a change breaks what the versions promise."""
        return any(change.breaking for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        changes = [{**codec.encode(change), "breaking": change.breaking} for change in self.changes]
        return {**codec.encode(self), "breaking": self.breaking, "changes": changes}

    @property
    def counts(self) -> tuple[int, int]:
        """The number of its changes, and of those that break something."""
        return len(self.changes), sum(change.breaking for change in self.changes)


def from_tables(part: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[FactChange]:
    """Yield each entry of two tables that differs, as a change that breaks nothing."""
    for name in sorted({*before, *after}):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield FactChange(part=part, subject=name, before=old, after=new)


def document(found: Iterable[VariantDifference]) -> dict[str, Any]:
    """Return the differences as one JSON document."""
    differences = tuple(found)
    return {
        "breaking": any(each.breaking for each in differences),
        "variants": [each.to_json() for each in differences],
    }


def text(found: Iterable[VariantDifference]) -> str:
    """Return the differences as text: a line for each change, those that break something first."""
    lines: list[str] = []
    differences = tuple(found)
    for each in differences:
        lines.append(f"{each.variant}: {_summary(each)}")
        for part, group in _parts(each):
            lines.append(f"  {part}")
            rows, left = _rows(group)
            cut = [(mark, *map(_cut, texts)) for mark, *texts in rows]
            shown = columns([(mark, what, old, "→", new, why) for mark, what, old, new, why in cut])
            lines += [f"    {line}" for line in shown]
            lines += [f"    and {left} more that break nothing; --format json has them"] if left else []
        lines += [f"  note: {escaped(note)}" for note in each.notes]
    return "".join(f"{line}\n" for line in (*lines, *_overview(differences)))


def markdown(found: Iterable[VariantDifference]) -> str:
    """Return the differences as Markdown for a pull request: a table for each variant."""
    lines: list[str] = []
    for each in found:
        lines += [f"### {_code(each.variant)}: {_summary(each)}", ""]
        if each.changes:
            lines += ["| | part | subject | before | after | why |", "|---|---|---|---|---|---|"]
        left = 0
        for part, group in _parts(each):
            rows, more = _rows(group)
            left += more
            for mark, subject, before, after, why in rows:
                sign = "**breaking**" if mark == _BREAKING else ""
                cells = (sign, part, _code(_cut(subject)), _code(_cut(before)), _code(_cut(after)), _plain(why))
                lines.append(f"| {' | '.join(cells)} |")
        lines += ["", f"{left} more change{'s' * (left > 1)} that break{'s' * (left == 1)} nothing."] if left else []
        lines += ["", *(f"Not compared: {_plain(note)}" for note in each.notes), ""]
    return "".join(f"{line}\n" for line in lines)


_BREAKING, _FINE = "breaking", "fine"
Row = tuple[str, str, str, str, str]


def _rows(group: Iterable[FactChange]) -> tuple[list[Row], int]:
    """Return the rows of a part, and how many changes that break nothing are left out."""
    changes = sorted(group, key=lambda change: not change.breaking)
    first = sum(change.breaking for change in changes) + _SHOWN
    rows = [
        (
            _BREAKING if change.breaking else _FINE,
            escaped(change.subject),
            escaped(change.before) or _ABSENT,
            escaped(change.after) or _ABSENT,
            escaped(change.breaks),
        )
        for change in changes[:first]
    ]
    return rows, len(changes) - len(rows)


def _parts(difference: VariantDifference) -> Iterator[tuple[str, Iterator[FactChange]]]:
    yield from groupby(difference.changes, key=lambda change: change.part)


def _summary(difference: VariantDifference) -> str:
    if not difference.after:
        return "lost"
    if not difference.before:
        return "new"
    changes, breaking = difference.counts
    if not changes:
        return "nothing changed"
    return f"{changes} change{'s' * (changes > 1)}, {breaking or 'none'} breaking"


def _overview(differences: tuple[VariantDifference, ...]) -> list[str]:
    """Return a table of the variants, if there are several."""
    if len(differences) <= 1:
        return []
    return columns([("variant", "result"), *((each.variant, _summary(each)) for each in differences)])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is, in a cell of a table."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~" else letter for letter in text)


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(0x2019)).replace('|', chr(0x2223))}`" if text else ""
