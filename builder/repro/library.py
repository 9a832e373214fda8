"""How two shared objects differ: by section, symbol and fatbin entry."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from builder.binary import device_code
from builder.binary.device_image import DeviceCodeError
from builder.errors import ToolError

_DERIVED = (".note.gnu.build-id", ".gnu_debuglink")
"""Sections that are a digest of the others."""
_TABLES = (".dynstr", ".dynsym", ".strtab", ".symtab", ".gnu.hash", ".hash")
_RELOCATIONS = (".rela.dyn", ".rela.plt", ".gnu.version", ".gnu.version_r")
"""Sections that number symbols, and change where another symbol comes before them."""
_CONTENT = (".rodata", ".nv_fatbin", ".hip_fatbin", ".data", ".text")
"""Sections in which what differs is a cause; others mostly repeat where these are."""
_SHOWN = 3
_AROUND = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    address: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    sections: dict[str, _Section]
    symbols: dict[str, tuple[int, int]]
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


def differ(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Yield each part in which two libraries differ, and how."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415  an optional dependency

    try:
        first, second = _read(before), _read(after)
    except (ELFError, ValueError, KeyError):
        yield "content", _bytes(before, after)
        return
    found = [*_symbols(first, second), *_sections(first, second, quiet=first.symbols.keys() != second.symbols.keys())]
    causes = [each for each in found if each[0].partition(" ")[2] not in _DERIVED]
    yield from causes or found or [("content", _bytes(before, after))]


def _read(content: bytes) -> _Image:
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415  an optional dependency
    from elftools.elf.sections import SymbolTableSection  # noqa: PLC0415

    sections: dict[str, _Section] = {}
    symbols: dict[str, tuple[int, int]] = {}
    for section in ELFFile(io.BytesIO(content)).iter_sections():
        if section["sh_type"] != "SHT_NOBITS" and section.name:
            sections[section.name] = _Section(address=section["sh_addr"], data=section.data())
        if isinstance(section, SymbolTableSection):
            symbols.update(
                (symbol.name, (symbol["st_value"], symbol["st_size"]))
                for symbol in section.iter_symbols()
                if symbol.name
            )
    return _Image(sections=sections, symbols=symbols)


def _symbols(first: _Image, second: _Image) -> Iterator[tuple[str, str]]:
    for which, one, other in (("first", first, second), ("second", second, first)):
        for name in sorted(one.symbols.keys() - other.symbols.keys())[:_SHOWN]:
            yield f"symbol {name}", f"only in the {which}"


def _sections(first: _Image, second: _Image, *, quiet: bool) -> Iterator[tuple[str, str]]:
    """Yield the sections; `quiet` leaves out tables of symbols, which were named already."""
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
            yield f"section {name}{_symbol_at(first, one, other)}", _bytes(one.data, other.data)


def _symbol_at(image: _Image, one: _Section, other: _Section) -> str:
    at = one.address + _first(one.data, other.data)
    inside = (
        name for name, (start, size) in sorted(image.symbols.items()) if one.address and start <= at < start + size
    )
    name = next(inside, None)
    return "" if name is None else f", symbol {name}"


def _entries(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Yield the fatbin entries that differ."""
    try:
        first, second = device_code.entries("the first", before), device_code.entries("the second", after)
    except DeviceCodeError:
        return
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            kernels = sorted(_kernels(one[1]) ^ _kernels(other[1]))[:_SHOWN]
            detail = f"kernels {', '.join(kernels)}" if kernels else _bytes(one[1], other[1])
            yield f"fatbin entry {index} ({one[0]})", detail


def _kernels(content: bytes) -> set[str]:
    """Return names of kernels in device code that is not compressed."""
    return {name.decode() for name in re.findall(rb"\.text\.([A-Za-z_][A-Za-z0-9_$]*)", content)}


def _first(one: bytes, other: bytes) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _bytes(one: bytes, other: bytes) -> str:
    at = _first(one, other)
    sizes = f"{len(one)} and {len(other)} bytes, " if len(one) != len(other) else ""
    return f"{sizes}from byte {at:#x}: {_excerpt(one, at)} and {_excerpt(other, at)}"


def _excerpt(data: bytes, at: int) -> str:
    """Return the text around a byte, where it stands in one, or its bytes in hexadecimal."""
    start = max(data.rfind(b"\0", 0, at) + 1, at - _AROUND)
    ends = data.find(b"\0", at)
    text = data[start : min(len(data) if ends < 0 else ends, at + _AROUND)]
    if text and all(0x20 <= byte < 0x7F for byte in text):  # noqa: PLR2004  printable ASCII
        return repr(text.decode())
    return data[at : at + 8].hex(" ") or "nothing"
