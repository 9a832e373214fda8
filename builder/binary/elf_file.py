"""Read the parts of a 64-bit ELF file that the dynamic loader uses: segments, the dynamic section and its strings."""

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from builder.untrusted import merged

Data = bytes | mmap.mmap
MACHINES = {62: "x86_64", 183: "aarch64"}

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<QQ")

_IDENT, _CLASS, _ORDER = 16, 4, 5
_CLASS_32, _CLASS_64 = 1, 2
_LITTLE, _BIG = 1, 2
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE, _PT_GNU_STACK = 1, 2, 4, 0x6474E551
_PF_X = 1
_NT_GNU_BUILD_ID = 3
_ET_DYN = 3

# Real libraries are far below these limits: libtorch_cpu has 9 program headers, 36 tags and 5 MB of names.
_MOST_SEGMENTS = 256
_MOST_TAGS = 4096
_MOST_NOTES = 4096
_LONGEST_BUILD_ID = 256
_LONGEST_OWNER = 16
_LARGEST_STRINGS = 64 << 20
_LONGEST_NAME = 1 << 16
_LONGEST_PATH = 1 << 14

DT_NEEDED, DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB = 1, 2, 4, 5, 6
DT_RELA, DT_RELASZ, DT_STRSZ, DT_SONAME, DT_RPATH = 7, 8, 10, 14, 15
DT_REL, DT_RELSZ, DT_PLTREL, DT_TEXTREL, DT_JMPREL = 17, 18, 20, 22, 23
DT_RUNPATH, DT_FLAGS = 29, 30
DT_GNU_HASH, DT_VERSYM, DT_VERNEED = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF


class ElfError(ValueError):
    """The bytes are not a complete 64-bit ELF shared object; the message says why."""


class Segment(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    address: int
    size: int


class Section(NamedTuple):
    """A section header: only a hint, since the loader ignores it."""

    name: str
    type: int
    address: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ElfFile:
    """A view of an ELF file's bytes; every method raises ElfError for a damaged part.

    Raises:
        ElfError: the file is damaged there.
    """

    data: Data
    machine: str = field(init=False)
    segments: tuple[Segment, ...] = field(init=False)
    sections: tuple[Section, ...] = field(init=False)
    tags: tuple[tuple[int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        header = self._header()
        object.__setattr__(self, "machine", MACHINES.get(header[2], f"machine {header[2]}"))
        object.__setattr__(self, "segments", tuple(self._read_segments(header)))
        object.__setattr__(self, "sections", tuple(self._read_sections(header)))
        object.__setattr__(self, "tags", tuple(self._read_tags()))

    def _header(self) -> tuple[int, ...]:
        ident = bytes(self.data[:_IDENT])
        if len(ident) < _IDENT:
            raise ElfError("the ELF header is cut off")
        if ident[_CLASS] == _CLASS_32:
            raise ElfError("it is a 32-bit ELF file")
        if ident[_ORDER] == _BIG:
            raise ElfError("it is a big-endian ELF file")
        if (ident[_CLASS], ident[_ORDER]) != (_CLASS_64, _LITTLE):
            raise ElfError("its ELF header is damaged")
        if len(self.data) < _HEADER.size:
            raise ElfError("the ELF header is cut off")
        header: tuple[int, ...] = _HEADER.unpack_from(self.data, 0)
        if header[1] != _ET_DYN:
            kind = {1: "an object file", 2: "an executable", 4: "a core dump"}.get(header[1], f"of type {header[1]}")
            raise ElfError(f"it is {kind}, not a shared library")
        return header

    def _read_segments(self, header: tuple[int, ...]) -> Iterator[Segment]:
        offset, entry, count = header[5], header[9], header[10]
        if entry != _SEGMENT.size or count == 0:
            raise ElfError("it has no program headers, so no loader can load it")
        if count > _MOST_SEGMENTS:
            raise ElfError(f"it has {count} program headers, more than the {_MOST_SEGMENTS} that are read")
        for index in range(count):
            kind, flags, at, address, _, size, _, _ = self.unpack(_SEGMENT, offset + index * entry)
            if kind == _PT_LOAD and at + size > len(self.data):
                raise ElfError(f"it is cut off: a segment ends at byte {at + size}, the file at {len(self.data)}")
            yield Segment(type=kind, flags=flags, offset=at, address=address, size=size)

    def _read_sections(self, header: tuple[int, ...]) -> Iterator[Section]:
        offset, entry, count, names = header[6], header[11], header[12], header[13]
        if offset == 0:
            return
        if entry != _SECTION.size or offset + entry * count > len(self.data):
            raise ElfError(
                f"it is cut off: section headers end at byte {offset + entry * count}, the file at {len(self.data)}"
            )
        rows = [self.unpack(_SECTION, offset + index * entry) for index in range(count)]
        text = rows[names][4] if names < count else None
        for name, kind, _, address, at, size, *_ in rows:
            label = "" if text is None else self._text_at(text + name)
            yield Section(name=label, type=kind, address=address, offset=at, size=size)

    def _read_tags(self) -> Iterator[tuple[int, int]]:
        segment = next((segment for segment in self.segments if segment.type == _PT_DYNAMIC), None)
        if segment is None:
            raise ElfError("it has no dynamic section, so it is not a shared library")
        start = self.offset_of(segment.address, size=_DYNAMIC.size)
        if segment.size > _MOST_TAGS * _DYNAMIC.size:
            raise ElfError(f"its dynamic section has {segment.size} bytes, more than {_MOST_TAGS} entries")
        for at in range(start, start + segment.size - _DYNAMIC.size + 1, _DYNAMIC.size):
            tag, value = self.unpack(_DYNAMIC, at)
            if tag == 0:
                return
            yield tag, value
        raise ElfError("its dynamic section has no end")

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        """Return the values at an offset of the file."""
        try:
            return layout.unpack_from(self.data, offset)
        except (struct.error, OverflowError) as error:
            raise ElfError(f"it is cut off or damaged: nothing to read at byte {offset}") from error

    def _text_at(self, offset: int) -> str:
        """Return the text at `offset`, up to its zero byte, for section names, which are short."""
        return bytes(self.data[offset : offset + 64]).split(b"\0", 1)[0].decode("ascii", "backslashreplace")

    def offset_of(self, address: int, *, size: int = 0) -> int:
        """Return the file offset of an address."""
        for segment in self.segments:
            if segment.type == _PT_LOAD and segment.address <= address < segment.address + segment.size:
                if address + size > segment.address + segment.size:
                    break
                return address - segment.address + segment.offset
        raise ElfError(f"it is damaged: its dynamic section names address {address:#x}, which is not in the file")

    def tag(self, wanted: int) -> int | None:
        """Return the value of a dynamic tag; None if the file lacks it."""
        return next((value for tag, value in self.tags if tag == wanted), None)

    @property
    def strings(self) -> bytes:
        """The dynamic string table."""
        address, size = self.tag(DT_STRTAB), self.tag(DT_STRSZ)
        if address is None or size is None:
            raise ElfError("it is damaged: it has no dynamic string table")
        if size > _LARGEST_STRINGS:
            raise ElfError(f"its names have {size} bytes, more than the {_LARGEST_STRINGS} that are read")
        offset = self.offset_of(address, size=size)
        return bytes(self.data[offset : offset + size])

    def texts(self, strings: bytes, *wanted: int) -> tuple[str, ...]:
        """Return the strings that these dynamic tags name, in order."""
        return tuple(text(strings, value, most=_LONGEST_PATH) for tag, value in self.tags if tag in wanted)

    @property
    def executable_stack(self) -> bool:
        """Whether loading the file makes the stack executable; a missing PT_GNU_STACK does, too."""
        return all(segment.flags & _PF_X for segment in self.segments if segment.type == _PT_GNU_STACK)

    @property
    def code(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of the executable parts of the file, each byte once."""
        return merged(
            (segment.offset, segment.size)
            for segment in self.segments
            if segment.type == _PT_LOAD and segment.flags & _PF_X
        )

    @property
    def build_id(self) -> str | None:
        """The build-id, in hex."""
        for owner, kind, at, size in self.notes():
            if owner == b"GNU" and kind == _NT_GNU_BUILD_ID and size <= _LONGEST_BUILD_ID:
                return bytes(self.data[at : at + size]).hex()
        return None

    def notes(self) -> Iterator[tuple[bytes, int, int, int]]:
        """Yield who wrote each note, its type, and the offset and the size of its content."""
        seen = 0
        for segment in self.segments:
            at, end = segment.offset, segment.offset + segment.size
            while segment.type == _PT_NOTE and at + 12 <= end:
                name_size, size, kind = self.unpack(struct.Struct("<III"), at)
                content = at + 12 + (name_size + 3) // 4 * 4
                yield (
                    bytes(self.data[at + 12 : at + 12 + min(name_size, _LONGEST_OWNER)]).rstrip(b"\0"),
                    kind,
                    content,
                    size,
                )
                at = content + (size + 3) // 4 * 4
                seen += 1
                if seen > _MOST_NOTES:
                    raise ElfError(f"it has more than {_MOST_NOTES} notes")


def text(strings: bytes, offset: int, *, most: int = _LONGEST_NAME) -> str:
    """Return the zero-terminated text at `offset` of a string table.

    Raises:
        ElfError: the name is cut off, or has more than `most` bytes.
    """
    end = strings.find(b"\0", offset, offset + most)
    if end < 0:
        raise ElfError(
            f"it is damaged: a name at {offset} lies outside its string table, or has more than {most} bytes"
        )
    return strings[offset:end].decode("utf-8", "backslashreplace")
