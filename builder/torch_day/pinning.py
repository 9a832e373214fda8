"""The pin file with the parts of a release."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from builder.pins import Part, PinnedWheel, Pins, to_toml
from builder.torch_day.proposal import FileEdit, Line
from builder.torch_day.release import Release

NAME = "pins.toml"
_REQUIRES = re.compile(r"^requires = \[(.*)\]$", re.MULTILINE)
_INDEX = re.compile(r'^index = "(.*)"$', re.MULTILINE)
_WHEEL = re.compile(r'"(?P<file>[^"]+\.whl)" = \{')


def edit(release: Release, text: str, pins: Pins) -> FileEdit:
    """Return the file with what is pinned for a release."""
    new = merged(pins, release.parts, release.wheels)
    return FileEdit(name=NAME, old=text, new=_lines(to_toml(new), text, release))


def merged(pins: Pins, parts: Sequence[Part], wheels: Mapping[str, PinnedWheel]) -> Pins:
    """Return the pins with parts added, or put in the place of those for the same torch, toolkit and index."""
    found = list(pins.parts)
    for part in parts:
        found = _with_part(found, part)
    used = {file for part in found for table in part.wheels.values() for files in table.values() for file in files}
    return replace(pins, parts=tuple(found), wheels={f: w for f, w in {**pins.wheels, **wheels}.items() if f in used})


def _with_part(parts: list[Part], new: Part) -> list[Part]:
    kept = [part for part in parts if not _is_superseded(part, new)]
    for number, part in enumerate(kept):
        if _is_same(part, new):
            return [*kept[:number], _united(part, new), *kept[number + 1 :]]
    return _inserted(kept, new)


def _is_same(part: Part, new: Part) -> bool:
    same = (part.name, part.version, part.index) == (new.name, new.version, new.index)
    return same and bool(set(part.compute) & set(new.compute))


def _is_superseded(part: Part, new: Part) -> bool:
    """Whether the default index now has all that a part takes from another one."""
    same = (part.name, part.version, part.compute) == (new.name, new.version, new.compute)
    return same and part.index is not None and new.index is None and set(part.wheels) <= set(new.wheels)


def _united(part: Part, new: Part) -> Part:
    """Return a part with new pins; another patch release replaces all of the old ones."""
    if part.requires != new.requires:
        return new
    wheels = {
        system: {**part.wheels.get(system, {}), **new.wheels.get(system, {})}
        for system in {**part.wheels, **new.wheels}
    }
    return replace(new, compute=tuple(dict.fromkeys((*part.compute, *new.compute))), wheels=wheels)


def _inserted(parts: list[Part], new: Part) -> list[Part]:
    """Return the parts with a new one behind those of its name that are not for a later version."""
    places = [number for number, part in enumerate(parts) if part.name == new.name and _before(part, new)]
    if new.version is None:  # toolkit and libraries stand in pairs
        places = [number for number, part in enumerate(parts) if part.name in ("toolkit", "libraries")]
    first = next((number for number, part in enumerate(parts) if part.name == new.name), len(parts))
    place = max(places, default=first - 1) + 1
    return [*parts[:place], new, *parts[place:]]


def _before(part: Part, new: Part) -> bool:
    return _numbers(part.version) <= _numbers(new.version)


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(map(int, version.split("."))) if version else ()


def _lines(text: str, old: str, release: Release) -> tuple[Line, ...]:
    """Return the lines of the file; those of a block that was not there each with the source that they have if new."""
    lines: list[Line] = []
    known = set(old.split("\n\n"))
    for block in text.split("\n\n"):
        source = None if block in known else _source(block)
        for line in block.splitlines():
            match = _WHEEL.match(line)
            pinned = None if match is None else release.wheels.get(match["file"])
            of_wheel = f"the hash that {(pinned and pinned.index) or 'the default index'} states"
            lines.append(Line(text=line, source=source if match is None else of_wheel))
        lines.append(Line(text="", source=source))
    return tuple(lines[:-1])


def _source(block: str) -> str:
    """Return where the lines of a part come from."""
    requires = _REQUIRES.search(block)
    index = _INDEX.search(block)
    if requires is None:
        return "no part"
    place = "the default index" if index is None else index[1]
    return f"files on {place} for {requires[1]}"
