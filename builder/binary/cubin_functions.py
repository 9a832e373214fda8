"""The functions of a cubin: their registers, memory and spills, as ptxas wrote them for the driver.

NVIDIA documents none of it. The figures were compared with those of `cuobjdump -res-usage`, and the spills with those
of `ptxas -v`, for what ptxas 12.0 to 13.0 write for 7.0 to 12.1.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from builder.binary import cubin
from builder.binary.device_image import UnpackingBudget
from builder.binary.functions import Function

_VERSION = struct.Struct("<20xH")
_SYMBOL = struct.Struct("<I12xQ")
_PAIR = struct.Struct("<II")
_SYMBOL_TABLE = 2
_REGISTERS, _STACK = 0x2F, 0x12
"""Attributes of `.nv.info`, each with a symbol and a number."""
_MOST_THREADS, _EXACT_THREADS, _LIMIT, _MARKS = 0x05, 0x10, 0x1B, 0x55
"""Attributes of `.nv.info.<function>`; the last has the instructions that ptxas marks, by their offsets."""
_NO_LIMIT, _NO_BOUND = 255, 0xFFFFFFFF
_SPILL = 1
_STORE, _LOAD = 0x387, 0x983
_OPCODE = 0xFFF
_WIDTHS = (1, 1, 2, 2, 4, 8, 16)
_WIDTH_AT = 9
"""The byte of an instruction whose bits 1 to 3 say how many bytes it moves."""
_MARKS_SINCE, _CUDA_13 = 126, 1
"""Versions of cubins: of CUDA 12.6, whose ptxas is the first that marks what spills, and of 13.0 and later."""
_LONGEST_OPTIONS = 4096
_WORDS_OF_TOOLS = 4
"""The texts of the note about the tools: its name, its release, its build and its options."""


class _DamagedCubinError(ValueError):
    """Bytes that are no cubin."""


@dataclass(frozen=True, slots=True)
class _SectionPlace:
    kind: int
    start: int
    size: int
    link: int


@dataclass(frozen=True, slots=True)
class _Cubin:
    content: bytes
    budget: UnpackingBudget
    sections: dict[bytes, _SectionPlace]
    strings: int
    """The offset of the names of symbols."""

    @classmethod
    def read(cls, content: bytes, budget: UnpackingBudget) -> "_Cubin":
        found = cubin.table(content, 0, len(content))
        if found is None:
            raise _DamagedCubinError
        names, headers = found
        sections: dict[bytes, _SectionPlace] = {}
        strings = 0
        for place in headers:
            budget.spend("sections of cubins")
            label, kind, _, _, start, size, link, *_ = cubin.SECTION.unpack_from(content, place)
            sections[_name(content, names + label, budget)] = _SectionPlace(kind, start, size, link)
            if kind == _SYMBOL_TABLE:
                strings = cubin.SECTION.unpack_from(content, headers[link])[4]
        return cls(content, budget, sections, strings)

    def part(self, name: bytes) -> bytes:
        """Return the content of a section; nothing for one that is not there, or has none in the file."""
        found = self.sections.get(name)
        if found is None or found.kind == cubin.NO_BITS:
            return b""
        return self.content[found.start : found.start + found.size]

    def size(self, name: bytes) -> int:
        """Return the bytes of a section, also of one that has no content in the file."""
        return self.sections[name].size if name in self.sections else 0

    def records(self, name: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the attribute, the short number and the content of each record of a section `.nv.info`."""
        content, at = self.part(name), 0
        while at + cubin.RECORD.size <= len(content):
            self.budget.spend("records about functions")
            kind, attribute, number = cubin.RECORD.unpack_from(content, at)
            at += cubin.RECORD.size
            size = number if kind == cubin.WITH_SIZE else 0
            yield attribute, number, content[at : at + size]
            at += size

    def constants(self) -> dict[bytes, int]:
        """Return the bytes of constant memory of each function, in all banks."""
        found: dict[bytes, int] = defaultdict(int)
        for name, section in self.sections.items():
            bank, _, function = name.removeprefix(b".nv.constant").partition(b".")
            if bank.isdigit() and name.startswith(b".nv.constant"):
                found[function] += section.size
        return found

    @property
    def marks_spills(self) -> bool:
        """Whether its ptxas marks the instructions that spill."""
        version: int = _VERSION.unpack_from(self.content)[0]
        return version == _CUDA_13 or version >= _MARKS_SINCE

    @property
    def options(self) -> str | None:
        """The options of its ptxas, which that of CUDA 13 writes."""
        _, separator, texts = self.part(b".note.nv.tkinfo").partition(b"\0ptxas\0")
        words = texts.split(b"\0", _WORDS_OF_TOOLS - 1)
        if not separator or len(words) < _WORDS_OF_TOOLS:
            return None
        return " ".join(words[2][:_LONGEST_OPTIONS].decode("utf-8", "backslashreplace").split())


def functions(content: bytes, budget: UnpackingBudget, *, at: int) -> Iterator[Function]:
    """Yield the functions of a cubin that is at a byte of a library.

    Raises:
        DeviceCodeError: it is damaged, or has more of them than are read.
    """
    try:
        yield from _functions(_Cubin.read(content, budget))
    except (struct.error, IndexError, OverflowError, _DamagedCubinError):
        raise budget.damaged("cubin", at) from None


def _functions(file: _Cubin) -> Iterator[Function]:
    numbers: dict[int, dict[int, int]] = defaultdict(dict)
    for attribute, _, content in file.records(b".nv.info"):
        if attribute in {_REGISTERS, _STACK}:
            symbol, number = _PAIR.unpack_from(content)
            numbers[symbol][attribute] = number
    if not numbers:
        return
    table = file.sections.get(b".symtab")
    if table is None:
        raise _DamagedCubinError
    constants, options, marks_spills = file.constants(), file.options, file.marks_spills
    for symbol, found in numbers.items():
        if _REGISTERS not in found:
            continue
        file.budget.spend("functions")
        if symbol >= table.size // _SYMBOL.size:
            raise _DamagedCubinError
        label, size = _SYMBOL.unpack_from(file.content, table.start + symbol * _SYMBOL.size)
        name = _name(file.content, file.strings + label, file.budget)
        stack = found.get(_STACK, 0)
        bounded = None if stack == _NO_BOUND else stack
        threads, limit, marks = _about(file, name)
        told = marks_spills or stack == 0
        stores, loads = _spills(file.sections.get(b".text." + name), file.content, marks) if told else (None, None)
        yield Function(
            name=name.decode("utf-8", "backslashreplace"),
            registers=found[_REGISTERS],
            stack=bounded,
            shared=file.size(b".nv.shared." + name),
            constant=constants.get(name, 0),
            size=size,
            threads=threads,
            spill_stores=stores,
            spill_loads=loads,
            limit=limit,
            options=options,
        )


def _about(file: _Cubin, name: bytes) -> tuple[int | None, int | None, list[int]]:
    """Return the most threads of a block, the most registers that ptxas was allowed, and the offsets of spills."""
    threads = limit = None
    marks: list[int] = []
    for attribute, number, content in file.records(cubin.OF_KERNEL + name):
        if attribute in {_MOST_THREADS, _EXACT_THREADS}:
            x, y, z = struct.unpack_from("<III", content)
            threads = x * y * z
        elif attribute == _LIMIT and number != _NO_LIMIT:
            limit = number
        elif attribute == _MARKS:
            file.budget.spend("records about functions", len(content) // _PAIR.size)
            pairs = _PAIR.iter_unpack(content[: len(content) - len(content) % _PAIR.size])
            marks += [offset for kind, offset in pairs if kind == _SPILL]
    return threads, limit, marks


def _spills(text: _SectionPlace | None, content: bytes, marks: list[int]) -> tuple[int | None, int | None]:
    """Return the bytes that instructions store and load to spill; None where one of them is none that is known here."""
    moved = {_STORE: 0, _LOAD: 0}
    for offset in marks:
        if text is None or offset + 16 > text.size:
            raise _DamagedCubinError
        at = text.start + offset
        opcode = int.from_bytes(content[at : at + 2], "little") & _OPCODE
        width = content[at + _WIDTH_AT] >> 1 & 7
        if opcode not in moved or width >= len(_WIDTHS):
            return None, None  # of a GPU before 7.0, whose instructions are others
        moved[opcode] += _WIDTHS[width]
    return moved[_STORE], moved[_LOAD]


def _name(content: bytes, at: int, budget: UnpackingBudget) -> bytes:
    end = content.find(b"\0", at, at + cubin.LONGEST_NAME)
    if end < 0:
        raise _DamagedCubinError
    budget.spend("bytes of names of functions", end - at)
    return content[at:end]
