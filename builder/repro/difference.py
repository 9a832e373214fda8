"""Find the difference between two wheels: the member, and in a library the section, the symbol or the fatbin entry."""

import difflib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from builder.binary import fatbin
from builder.binary.device_image import DeviceCodeError
from builder.errors import ToolError
from builder.run import ask
from builder.wheel.archive import Wheel

_LIBRARIES = (".so", ".dylib", ".pyd")
_DIGESTS = "digests"
_NAMES_OF_DIGESTS = ("digest", "hashes", "content", "serialNumber")
_LINES_SHOWN = 3
_TEXT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelDifference:
    """A place in which two wheels differ."""

    member: str
    """The path in the wheel; empty for the archive itself."""
    part: str = ""
    """The section, symbol or fatbin entry in a library."""
    detail: str = ""

    def __str__(self) -> str:
        where = f"{self.member or 'the archive'}{f', {self.part}' if self.part else ''}"
        return f"{where}: {self.detail}" if self.detail else where


def between(first: Path, second: Path) -> tuple[WheelDifference, ...]:
    """Return the differences between two wheel files; empty if their bytes are the same."""
    if first.name == second.name and first.read_bytes() == second.read_bytes():
        return ()
    found = tuple(_members(Wheel.read(first), Wheel.read(second)))
    # A digest of a differing file only repeats that difference.
    causes = tuple(each for each in found if not (each.member.endswith(".dist-info/RECORD") or each.part == _DIGESTS))
    named: tuple[WheelDifference, ...] = ()
    if first.name != second.name:
        named = (WheelDifference(member="", part="file name", detail=f"{first.name} and {second.name}"),)
    return named + (causes or found or tuple(_archive(first, second)))


def _members(first: Wheel, second: Wheel) -> Iterator[WheelDifference]:
    for name in sorted({*first.members, *second.members}):
        one, other = first.members.get(name), second.members.get(name)
        if one is None or other is None:
            yield WheelDifference(member=name, detail=f"only in the {'second' if one is None else 'first'}")
            continue
        before, after = one.read(), other.read()
        if before != after and name.endswith(_LIBRARIES):
            parts = of_libraries(before, after)
            yield from (WheelDifference(member=name, part=part, detail=detail) for part, detail in parts)
        elif before != after:
            yield _text_differs(name, before, after)


def _text_differs(name: str, before: bytes, after: bytes) -> WheelDifference:
    if name.endswith(("/metadata.json", ".cdx.json")) and _without_digests(before) == _without_digests(after):
        return WheelDifference(member=name, part=_DIGESTS, detail="they follow from the other members")
    try:
        lines = before.decode().splitlines(), after.decode().splitlines()
    except UnicodeDecodeError:
        return WheelDifference(member=name, detail="binary files differ")
    changed = [line for line in difflib.unified_diff(*lines, lineterm="", n=0) if line[:3] not in ("---", "+++", "@@ ")]
    return WheelDifference(member=name, detail=" ".join(line[:_TEXT] for line in changed[:_LINES_SHOWN]))


def _without_digests(content: bytes) -> object:
    """Return a JSON value without digests of content."""

    def kept(table: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in table.items() if name not in _NAMES_OF_DIGESTS}

    try:
        return json.loads(content, object_hook=kept)
    except ValueError:
        return content


def _archive(first: Path, second: Path) -> Iterator[WheelDifference]:
    """Yield the differences between archives with the same members: order, times, modes."""
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        before, after = one.infolist(), other.infolist()
    if [info.filename for info in before] != [info.filename for info in after]:
        yield WheelDifference(member="", part="order of members")
        return
    for old, new in zip(before, after, strict=True):
        for fact in ("date_time", "external_attr", "compress_type", "compress_size", "create_system"):
            if getattr(old, fact) != getattr(new, fact):
                detail = f"{getattr(old, fact)} and {getattr(new, fact)}"
                yield WheelDifference(member=old.filename, part=fact.replace("_", " "), detail=detail)


_DERIVED = (".note.gnu.build-id", ".gnu_debuglink")
"""Sections with a digest of others."""
_TABLES = (".dynstr", ".dynsym", ".strtab", ".symtab", ".gnu.hash", ".hash")
_RELOCATIONS = (".rela.dyn", ".rela.plt", ".gnu.version", ".gnu.version_r")
"""Sections that number symbols, and so change if a symbol before them changes."""
_CONTENT = (".rodata", ".nv_fatbin", ".hip_fatbin", ".data", ".text")
"""Sections whose differences are causes; those of other sections mostly follow from these."""
_SHOWN = 3
_AROUND = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class _LibrarySection:
    address: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    sections: dict[str, _LibrarySection] = field(default_factory=dict)
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name → address, size."""


def check_reader() -> None:
    """Refuse to begin without pyelftools, which is an optional dependency.

    Raises:
        ToolError: pyelftools is not installed.
    """
    if find_spec("elftools") is None:
        raise ToolError(
            "comparing libraries needs pyelftools", help="python -m pip install 'kernel-wheel-builder[repro]'"
        )


def of_libraries(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Yield each differing part of two libraries, with the difference."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415  an optional dependency

    try:
        first, second = _read(before), _read(after)
    except (ELFError, ValueError, KeyError):
        yield "content", _bytes_differ(before, after)
        return
    found: list[tuple[str, str]] = []
    for which, own, others in (("first", first.symbols, second.symbols), ("second", second.symbols, first.symbols)):
        found += [(f"symbol {name}", f"only in the {which}") for name in sorted(own.keys() - others.keys())[:_SHOWN]]
    found += _sections(first, second, quiet=bool(found))
    causes = [each for each in found if each[0].partition(" ")[2] not in _DERIVED]
    yield from causes or found or [("content", _bytes_differ(before, after))]


def _read(content: bytes) -> _Image:
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415  an optional dependency
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415

    image = _Image()
    for section in ELFFile(io.BytesIO(content)).iter_sections():
        if section["sh_type"] != "SHT_NOBITS" and section.name:
            image.sections[section.name] = _LibrarySection(address=section["sh_addr"], data=section.data())
        if isinstance(section, SymbolTableSection):
            named = (symbol for symbol in section.iter_symbols() if symbol.name)
            image.symbols.update((symbol.name, (symbol["st_value"], symbol["st_size"])) for symbol in named)
    return image


def _sections(first: _Image, second: _Image, *, quiet: bool) -> Iterator[tuple[str, str]]:
    """Yield the differing sections; `quiet` omits symbol tables, whose differences were already reported."""
    for name in sorted(first.sections.keys() ^ second.sections.keys()):
        yield f"section {name}", f"only in the {'first' if name in first.sections else 'second'}"
    ordered = sorted(first.sections.items(), key=lambda item: (item[0] not in _CONTENT, item[0] == ".text"))
    for name, one in ordered:
        other = second.sections.get(name)
        if other is None or one.data == other.data or (quiet and name in (*_TABLES, *_RELOCATIONS)):
            continue
        entries = list(_entries(one.data, other.data)) if "fatbin" in name.lower() else []
        if entries:
            yield from ((f"section {name}, {entry}", detail) for entry, detail in entries)
        else:
            yield f"section {name}{_symbol_at(first, one, other)}", _bytes_differ(one.data, other.data)


def _symbol_at(image: _Image, one: _LibrarySection, other: _LibrarySection) -> str:
    at = one.address + _first(one.data, other.data)
    symbols = sorted(image.symbols.items()) if one.address else ()
    return next((f", symbol {name}" for name, (start, size) in symbols if start <= at < start + size), "")


def _entries(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Yield the fatbin entries that differ."""
    try:
        first, second = (tuple(fatbin.entries(*each)) for each in (("the first", before), ("the second", after)))
    except DeviceCodeError:
        return
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            kernels = sorted(_kernels(one[1]) ^ _kernels(other[1]))[:_SHOWN]
            detail = f"kernels {', '.join(kernels)}" if kernels else _bytes_differ(one[1], other[1])
            yield f"fatbin entry {index} ({one[0]})", detail


def _kernels(content: bytes) -> set[str]:
    """Return the names of kernels in uncompressed device code."""
    return {name.decode() for name in re.findall(rb"\.text\.([A-Za-z_][A-Za-z0-9_$]*)", content)}


def _first(one: bytes, other: bytes) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _bytes_differ(one: bytes, other: bytes) -> str:
    at = _first(one, other)
    sizes = f"{len(one)} and {len(other)} bytes, " if len(one) != len(other) else ""
    return f"{sizes}from byte {at:#x}: {_excerpt(one, at)} and {_excerpt(other, at)}"


def _excerpt(data: bytes, at: int) -> str:
    """Return the text around a byte, or its bytes in hexadecimal if there is no text."""
    start = max(data.rfind(b"\0", 0, at) + 1, at - _AROUND)
    ends = data.find(b"\0", at)
    text = data[start : min(len(data) if ends < 0 else ends, at + _AROUND)]
    if text and all(0x20 <= byte < 0x7F for byte in text):  # noqa: PLR2004  printable ASCII
        return repr(text.decode())
    return data[at : at + 8].hex(" ") or "nothing"


_MOST = 20_000
"""The most bytes of diffoscope's report: for libraries that differ throughout, it has millions."""


def diffoscope(first: Path, second: Path) -> str:
    """Return diffoscope's report as text, or why there is none; empty if it is not installed."""
    program = shutil.which("diffoscope")
    if program is None:
        return ""
    command = [program, "--text", "-", "--max-report-size", str(_MOST), "--no-progress", str(first), str(second)]
    done = ask(command)
    if done.returncode not in (0, 1):  # 1: the files differ
        last = next(reversed(done.stderr.strip().splitlines()), "it says nothing")
        return f"note: diffoscope fails: {last}\n"
    return done.stdout
