"""Compare cubins, the ELF files with CUDA's machine code, and tell whether one has code at all.

NVIDIA does not document the layout; it was read from the output of ptxas 12.4, 13.0 and 13.2.
"""

import struct
from collections import Counter
from dataclasses import dataclass

from builder.binary.device_image import UnpackingBudget
from builder.binary.elf_file import Data

_ELF = b"\x7fELF"
_HEADER = struct.Struct("<40xQ10xHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
NO_BITS = 8
_FILLED = (b".text.", b".nv.global", b".nv.constant", b".merc.text")
"""Sections with code or data have names that begin like this."""
_ABOUT = (b".note.nv.", b".nv.compat")
"""Sections that say how a cubin was made, and for which GPU; none of it runs."""
OF_KERNEL = b".nv.info."
"""Sections of what the driver has to know of one kernel, such as how many registers it takes."""
RECORD = struct.Struct("<BBH")
WITH_SIZE = 4
LONGEST_NAME = 1 << 16


@dataclass(frozen=True, slots=True)
class _Section:
    name: bytes
    header: tuple[int, ...]
    """Its type, flags, size, link, more, alignment and entry size, but not its offset."""
    content: bytes


def has_no_code(data: Data, start: int, end: int, budget: UnpackingBudget) -> bool:
    """Whether a cubin has no kernel and no data; False if it is not a cubin.

    Raises:
        DeviceCodeError: it has too many sections.
    """
    found = table(data, start, end)
    if found is None:
        return False
    names, headers = found
    for at in headers:
        budget.spend("sections of cubins")
        label = names + SECTION.unpack_from(data, at)[0]
        if bytes(data[label : label + 16]).startswith(_FILLED):
            return False
    return True


def table(data: Data, start: int, end: int) -> tuple[int, range] | None:
    """Return where the names of the sections of a cubin are, and where their headers; None for what is no cubin."""
    if end - start < _HEADER.size or data[start : start + 4] != _ELF:
        return None
    offset, entry, count, names = _HEADER.unpack_from(data, start)
    first, last = start + offset, start + offset + entry * count
    if entry != SECTION.size or names >= count or last > end:
        return None
    return start + SECTION.unpack_from(data, first + names * entry)[4], range(first, last, entry)


def does_as(kept: bytes, other: bytes) -> bool:
    """Whether `kept` can replace `other` on a GPU that could load both: they have the same code and data.

    The notes about how they were made may differ, and `kept` may tell the driver more about its kernels: ptxas adds a
    workaround for 8.6 that 8.9 does not need. False if one is damaged or is not a cubin.
    """
    mine, theirs = _sections(kept), _sections(other)
    if mine is None or theirs is None or len(mine) != len(theirs):
        return False
    return all(_is_as(one, another) for one, another in zip(mine, theirs, strict=True))


def _is_as(kept: _Section, other: _Section) -> bool:
    if kept.name != other.name:
        return False
    if kept.name.startswith(_ABOUT):
        return True
    if kept.name.startswith(OF_KERNEL):
        more, needed = _records(kept.content), _records(other.content)
        return more is not None and needed is not None and needed <= more
    return kept == other


def _sections(cubin: bytes) -> list[_Section] | None:
    found = table(cubin, 0, len(cubin))
    if found is None:
        return None
    text, headers = found
    sections: list[_Section] = []
    for place in headers:
        name, kind, flags, _, start, size, link, info, align, entry = SECTION.unpack_from(cubin, place)
        label = cubin[text + name : cubin.find(b"\0", text + name, text + name + LONGEST_NAME)]
        content = b"" if kind == NO_BITS else cubin[start : start + size]
        sections.append(_Section(label, (kind, flags, size, link, info, align, entry), content))
    return sections


def _records(content: bytes) -> Counter[bytes] | None:
    """Count the records of a `.nv.info` section; None if the section does not end with a record."""
    found: Counter[bytes] = Counter()
    at = 0
    while at + RECORD.size <= len(content):
        kind, _, size = RECORD.unpack_from(content, at)
        end = at + RECORD.size + (size if kind == WITH_SIZE else 0)
        found[content[at:end]] += 1
        at = end
    return found if at == len(content) else None
