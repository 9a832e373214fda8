"""How two wheels differ: the member, and in a library the section, the symbol or the fatbin entry."""

import difflib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.repro import library
from builder.wheel.archive import Wheel

_LIBRARIES = (".so", ".dylib", ".pyd")
_DIGESTS = ("digest", "hashes", "content", "serialNumber")
_SHOWN = 3
_TEXT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place in which two wheels differ."""

    member: str
    """Path in the wheel; empty for the archive itself."""
    part: str = ""
    """Section, symbol or fatbin entry of a library."""
    detail: str = ""

    def __str__(self) -> str:
        where = f"{self.member or 'the archive'}{f', {self.part}' if self.part else ''}"
        return f"{where}: {self.detail}" if self.detail else where


def between(first: Path, second: Path) -> tuple[Difference, ...]:
    """Return where two wheel files differ; nothing where they are the same bytes."""
    if first.name == second.name and first.read_bytes() == second.read_bytes():
        return ()
    found = tuple(_members(Wheel.read(first), Wheel.read(second)))
    causes = tuple(difference for difference in found if not _follows(difference))
    named = () if first.name == second.name else (Difference(member="", part="file name", detail=_two(first, second)),)
    return named + (causes or found or tuple(_archive(first, second)))


def _two(first: Path, second: Path) -> str:
    return f"{first.name} and {second.name}"


def _follows(difference: Difference) -> bool:
    """Whether a difference only repeats another one: a digest of what differs."""
    return difference.member.endswith(".dist-info/RECORD") or difference.part == "digests"


def _members(first: Wheel, second: Wheel) -> Iterator[Difference]:
    for name in sorted({*first.members, *second.members}):
        one, other = first.members.get(name), second.members.get(name)
        if one is None or other is None:
            yield Difference(member=name, detail=f"only in the {'second' if one is None else 'first'}")
            continue
        before, after = one.read(), other.read()
        if before == after:
            continue
        if name.endswith(_LIBRARIES):
            yield from (
                Difference(member=name, part=part, detail=detail) for part, detail in library.differ(before, after)
            )
        else:
            yield _text(name, before, after)


def _text(name: str, before: bytes, after: bytes) -> Difference:
    if name.endswith(("/metadata.json", ".cdx.json")) and _without_digests(before) == _without_digests(after):
        return Difference(member=name, part="digests", detail="they follow from the other members")
    try:
        lines = before.decode().splitlines(), after.decode().splitlines()
    except UnicodeDecodeError:
        return Difference(member=name, detail="binary files differ")
    changed = [line for line in difflib.unified_diff(*lines, lineterm="", n=0) if line[:3] not in ("---", "+++", "@@ ")]
    return Difference(member=name, detail=" ".join(line[:_TEXT] for line in changed[:_SHOWN]))


def _without_digests(content: bytes) -> object:
    try:
        return _blank(json.loads(content))
    except ValueError:
        return content


def _blank(value: object) -> object:
    """Return a JSON value without what names content by a digest."""
    if isinstance(value, dict):
        return {name: _blank(inner) for name, inner in value.items() if name not in _DIGESTS}
    return [_blank(inner) for inner in value] if isinstance(value, list) else value


def _archive(first: Path, second: Path) -> Iterator[Difference]:
    """Yield what differs although every member is the same: order, times, modes."""
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        before, after = one.infolist(), other.infolist()
    if [info.filename for info in before] != [info.filename for info in after]:
        yield Difference(member="", part="order of members")
        return
    for old, new in zip(before, after, strict=True):
        for fact in ("date_time", "external_attr", "compress_type", "compress_size", "create_system"):
            if getattr(old, fact) != getattr(new, fact):
                detail = f"{getattr(old, fact)} and {getattr(new, fact)}"
                yield Difference(member=old.filename, part=fact.replace("_", " "), detail=detail)
