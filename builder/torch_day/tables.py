"""Add a release to the pin file, and to the tables about torch."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from builder import json_text, toml
from builder.config import Version
from builder.pins import PinnedPart, PinnedWheel, Pins, to_toml
from builder.torch_day.proposal import FileEdit, ProposedLine
from builder.torch_day.torch_release import Release

SHIM = "torch-shim.json"
PYTHON_HEADERS = "python-headers.toml"
STANDARDS = "cpp-extension.toml"
_WIDTH = 118
_BY_TORCH = re.compile(r"by torch (\d+\.\d+)'s own")


def shim(release: Release, text: str) -> FileEdit:
    """Add a release's new C functions to their table."""
    table: dict[str, dict[str, str]] = json.loads(text)
    source: dict[str, str] = {}
    for library, names in release.shim.items():
        known = table.setdefault(library, {})
        for name in names:
            if name not in known or release.minor < Version(known[name].removeprefix("<=")):
                known[name] = str(release.minor)
                source[f'"{name}": "{release.minor}"'] = f"torch/lib/{library}.so of {release.file}"
        table[library] = dict(sorted(known.items()))
    new = json_text.document(table, indent=0)
    lines = tuple(ProposedLine(text=line, source=source.get(line.rstrip(","), "a comma")) for line in new.splitlines())
    return FileEdit(name=SHIM, old=text, new=lines)


def gone(release: Release, text: str) -> Iterator[str]:
    """Report the C functions in the table that the release lacks."""
    table: dict[str, dict[str, str]] = json.loads(text)
    for library, names in release.shim.items():
        since = {name: Version(each.removeprefix("<=")) for name, each in table.get(library, {}).items()}
        for name in sorted(name for name, each in since.items() if each <= release.minor and name not in names):
            yield f"{library}.so lacks {name}, which {SHIM} has: kernels that use it do not load"


def python_headers(release: Release, text: str) -> FileEdit:
    """Add the headers of a newer release to the list; headers that only older releases have stay."""
    old: list[str] = toml.loads(text)["torch"]
    new = sorted({*old, *release.python_headers})
    lines = [ProposedLine(text=line) for line in text.splitlines()]
    listed = _BY_TORCH.search(text)
    if new == sorted(old) or (listed is not None and release.minor <= Version(listed[1])):
        return FileEdit(name=PYTHON_HEADERS, old=text, new=tuple(lines))
    start = next(number for number, line in enumerate(lines) if line.text == "torch = [")
    source = f"#include lines of the headers in {release.file}"
    by = f"by torch {release.minor}'s own"
    head = [
        ProposedLine(text=_BY_TORCH.sub(by, line.text), source=source) if _BY_TORCH.search(line.text) else line
        for line in lines[:start]
    ]
    wrapped = textwrap.wrap(
        ", ".join(toml.spelled(name) for name in new) + ",", _WIDTH, break_long_words=False, break_on_hyphens=False
    )
    body = [ProposedLine(text=f"  {line}", source=source) for line in wrapped]
    return FileEdit(name=PYTHON_HEADERS, old=text, new=(*head, lines[start], *body, ProposedLine(text="]")))


def standards(release: Release, text: str) -> FileEdit:
    """Add the C++ standard of a release, if it differs from the one that applies now."""
    known = toml.loads(text)["standard"]
    holding = next((entry["cxx"] for entry in known if Version(entry["torch"]) <= release.minor), None)
    lines = tuple(ProposedLine(text=line) for line in text.splitlines())
    if release.standard is None or release.standard == holding:
        return FileEdit(name=STANDARDS, old=text, new=lines)
    place = next(number for number, line in enumerate(lines) if line.text == "[[standard]]")
    for number, line in enumerate(lines):
        match = re.fullmatch(r'torch = "([0-9.]+)"', line.text)
        if match is not None and Version(match[1]) > release.minor:
            place = number + 3  # after the entry of a later torch
    source = f"TorchConfig.cmake of {release.file}"
    texts = ("[[standard]]", f'torch = "{release.minor}"', f"cxx = {release.standard}", "")
    new = tuple(ProposedLine(text=each, source=source) for each in texts)
    return FileEdit(name=STANDARDS, old=text, new=(*lines[:place], *new, *lines[place:]))


PINS = "pins.toml"
_REQUIRES = re.compile(r"^requires = \[(.*)\]$", re.MULTILINE)
_INDEX = re.compile(r'^index = "(.*)"$', re.MULTILINE)
_WHEEL = re.compile(r'"(?P<file>[^"]+\.whl)" = \{')


def pins(release: Release, text: str, pins: Pins) -> FileEdit:
    """Add the pins of a release to the file."""
    new = merged(pins, release.parts, release.wheels)
    return FileEdit(name=PINS, old=text, new=_pin_lines(to_toml(new), text, release))


def merged(pins: Pins, parts: Sequence[PinnedPart], wheels: Mapping[str, PinnedWheel]) -> Pins:
    """Add parts to the pins, or replace those for the same torch, toolkit and index."""
    found = list(pins.parts)
    for part in parts:
        found = _with_part(found, part)
    used = {file for part in found for table in part.wheels.values() for files in table.values() for file in files}
    return replace(pins, parts=tuple(found), wheels={f: w for f, w in {**pins.wheels, **wheels}.items() if f in used})


def _with_part(parts: list[PinnedPart], new: PinnedPart) -> list[PinnedPart]:
    kept = [part for part in parts if not _is_superseded(part, new)]
    for number, part in enumerate(kept):
        if _is_same(part, new):
            return [*kept[:number], _united(part, new), *kept[number + 1 :]]
    return _inserted(kept, new)


def _is_same(part: PinnedPart, new: PinnedPart) -> bool:
    same = (part.name, part.version, part.index) == (new.name, new.version, new.index)
    return same and bool(set(part.compute) & set(new.compute))


def _is_superseded(part: PinnedPart, new: PinnedPart) -> bool:
    """Whether the default index now has everything that a part takes from another index."""
    same = (part.name, part.version, part.compute) == (new.name, new.version, new.compute)
    return same and part.index is not None and new.index is None and set(part.wheels) <= set(new.wheels)


def _united(part: PinnedPart, new: PinnedPart) -> PinnedPart:
    """Add pins to a part; another patch release replaces all old ones."""
    if part.requires != new.requires:
        return new
    wheels = {
        system: {**part.wheels.get(system, {}), **new.wheels.get(system, {})}
        for system in {**part.wheels, **new.wheels}
    }
    return replace(new, compute=tuple(dict.fromkeys((*part.compute, *new.compute))), wheels=wheels)


def _inserted(parts: list[PinnedPart], new: PinnedPart) -> list[PinnedPart]:
    """Insert a part after those of its name that are not for a later version."""
    if new.version is None:  # toolkit and libraries come in pairs
        places = [number for number, part in enumerate(parts) if part.name in ("toolkit", "libraries")]
    else:
        named = [(number, part) for number, part in enumerate(parts) if part.name == new.name]
        places = [number for number, part in named if _numbers(part.version) <= _numbers(new.version)]
    first = next((number for number, part in enumerate(parts) if part.name == new.name), len(parts))
    place = max(places, default=first - 1) + 1
    return [*parts[:place], new, *parts[place:]]


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(map(int, version.split("."))) if version else ()


def _pin_lines(text: str, old: str, release: Release) -> tuple[ProposedLine, ...]:
    """Return the lines of the file; lines of a new block have the source of the block."""
    lines: list[ProposedLine] = []
    known = set(old.split("\n\n"))
    for block in text.split("\n\n"):
        source = None if block in known else _source(block)
        for line in block.splitlines():
            match = _WHEEL.match(line)
            pinned = None if match is None else release.wheels.get(match["file"])
            of_wheel = f"the hash that {(pinned and pinned.index) or 'the default index'} states"
            lines.append(ProposedLine(text=line, source=source if match is None else of_wheel))
        lines.append(ProposedLine(text="", source=source))
    return tuple(lines[:-1])


def _source(block: str) -> str:
    """Return the source of a part's lines."""
    requires, index = _REQUIRES.search(block), _INDEX.search(block)
    if requires is None:
        return "no part"
    return f"files on {'the default index' if index is None else index[1]} for {requires[1]}"
