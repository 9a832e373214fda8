"""Read what the dynamic loader reads of a 64-bit ELF file: section headers are neither needed nor trusted."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from builder.binary.elf_file import (
    DT_GNU_HASH,
    DT_HASH,
    DT_JMPREL,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_REL,
    DT_RELA,
    DT_RELASZ,
    DT_RELSZ,
    DT_SYMTAB,
    DT_VERNEED,
    DT_VERSYM,
    Data,
    ElfError,
    ElfImage,
    text,
)

__all__ = ["Data", "Elf", "ElfError", "Symbol"]

_SYMBOL = struct.Struct("<IBBHQQ")
_NEED = struct.Struct("<HHIII")
_NEED_VERSION = struct.Struct("<IHHII")
_SHT_DYNSYM = 11
# libtorch_cpu, the largest that is read, has 75,000 symbols with 5 MB of names, and 320,000 relocations.
_MOST_SYMBOLS = 1 << 19
_MOST_NAMES = 64 << 20
_MOST_VERSIONS = 1 << 12
_MOST_BUCKETS = 1 << 20
_MOST_RELOCATIONS = 1 << 23
_BLOCK = 24 << 14
_BINDINGS = {1: "global", 2: "weak", 10: "unique"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """An entry of the dynamic symbol table."""

    name: str
    defined: bool
    binding: str
    """`global`, `weak` or `unique`."""
    version: str | None = None
    """Version asked of another library, such as `GLIBC_2.28`."""
    library: str | None = None
    """The library that version is asked of."""


@dataclass(frozen=True, slots=True)
class Elf(ElfImage):
    """An ELF file over its bytes; every reader raises ElfError on what it cannot trust.

    Raises:
        ElfError: the file is damaged there.
    """

    def versions(self, strings: bytes) -> dict[int, tuple[str, str]]:
        """Return index → (library, version) of every version it needs."""
        return _versions(self, strings)

    def symbols(self, strings: bytes) -> Iterator[Symbol]:
        """Yield the dynamic symbols that take part in linking."""
        return _symbols(self, strings)


def _versions(file: ElfImage, strings: bytes) -> dict[int, tuple[str, str]]:
    address = file.tag(DT_VERNEED)
    found: dict[int, tuple[str, str]] = {}
    seen = 0
    while address is not None:
        _, count, library, aux, following = file.unpack(_NEED, file.offset_of(address, size=_NEED.size))
        at = address + aux
        for _ in range(count):
            _, _, index, name, step = file.unpack(_NEED_VERSION, file.offset_of(at, size=_NEED_VERSION.size))
            found[index & 0x7FFF] = (text(strings, library), text(strings, name))
            seen += 1
            if seen > _MOST_VERSIONS:
                raise ElfError("it is damaged: its list of needed versions does not end")
            if step == 0:
                break
            at += step
        seen += 1
        address = address + following if following and seen < _MOST_VERSIONS else None
    return found


def _symbols(file: ElfImage, strings: bytes) -> Iterator[Symbol]:
    address, count = file.tag(DT_SYMTAB), _symbol_count(file)
    if address is None or count <= 1:
        return
    start = file.offset_of(address, size=count * _SYMBOL.size)
    table = _SYMBOL.iter_unpack(file.data[start : start + count * _SYMBOL.size])
    needs, length = _versions(file, strings), 0
    for row, index in zip(table, _version_indices(file, count), strict=True):
        binding = _BINDINGS.get(row[1] >> 4)
        if row[0] == 0 or binding is None:
            continue
        defined = row[3] != 0
        library, version = (None, None) if defined else needs.get(index & 0x7FFF, (None, None))
        name = text(strings, row[0])
        length += len(name)
        if length > _MOST_NAMES:
            raise ElfError(f"the names of its symbols have more than {_MOST_NAMES} bytes together")
        yield Symbol(name=name, defined=defined, binding=binding, version=version, library=library)


def _version_indices(file: ElfImage, count: int) -> tuple[int, ...]:
    address = file.tag(DT_VERSYM)
    if address is None:
        return (0,) * count
    return file.unpack(struct.Struct(f"<{count}H"), file.offset_of(address, size=2 * count))


def _symbol_count(file: ElfImage) -> int:
    """Return the length of the symbol table, which no header states.

    The hash tables cover what is exported; the relocations, every symbol the loader will ever look
    up; a section header may know of more. The largest of them is the answer.
    """
    count = max(_hashed(file), _gnu_hashed(file), _relocated(file), _listed(file))
    if count > _MOST_SYMBOLS:
        raise ElfError(f"it claims {count} dynamic symbols, more than the {_MOST_SYMBOLS} that are read")
    return count


def _hashed(file: ElfImage) -> int:
    address = file.tag(DT_HASH)
    if address is None:
        return 0
    return file.unpack(struct.Struct("<II"), file.offset_of(address, size=8))[1]


def _gnu_hashed(file: ElfImage) -> int:
    address = file.tag(DT_GNU_HASH)
    if address is None:
        return 0
    buckets, first, bloom, _ = file.unpack(struct.Struct("<IIII"), file.offset_of(address, size=16))
    if buckets > _MOST_BUCKETS:
        raise ElfError(f"it is damaged: its table of symbols has {buckets} buckets")
    at = address + 16 + 8 * bloom
    last = max(file.unpack(struct.Struct(f"<{buckets}I"), file.offset_of(at, size=4 * buckets)), default=0)
    if last < first:
        return first
    chain = file.offset_of(at + 4 * buckets) + 4 * (last - first)
    while not file.unpack(struct.Struct("<I"), chain)[0] & 1:
        chain += 4
        last += 1
        if last > _MOST_SYMBOLS:
            raise ElfError("it is damaged: its table of symbols has no end")
    return last + 1


def _relocated(file: ElfImage) -> int:
    plt_has_addend = file.tag(DT_PLTREL) != DT_REL
    tables = (
        (DT_RELA, DT_RELASZ, struct.Struct("<12xI8x")),
        (DT_REL, DT_RELSZ, struct.Struct("<12xI")),
        (DT_JMPREL, DT_PLTRELSZ, struct.Struct("<12xI8x" if plt_has_addend else "<12xI")),
    )
    return 1 + max(_highest_symbol(file, *table) for table in tables)


def _highest_symbol(file: ElfImage, where: int, length: int, layout: struct.Struct) -> int:
    address, size = file.tag(where), file.tag(length)
    if address is None or not size:
        return 0
    if size > _MOST_RELOCATIONS * layout.size:
        raise ElfError(f"it has {size} bytes of relocations, more than the {_MOST_RELOCATIONS} that are read")
    start, block = file.offset_of(address, size=size), _BLOCK - _BLOCK % layout.size
    end = start + size - size % layout.size
    blocks = (file.data[at : min(at + block, end)] for at in range(start, end, block))
    return max((max(layout.iter_unpack(each))[0] for each in blocks), default=0)


def _listed(file: ElfImage) -> int:
    address = file.tag(DT_SYMTAB)
    return max(
        (
            section.size // _SYMBOL.size
            for section in file.sections
            if section.type == _SHT_DYNSYM and section.address == address
        ),
        default=0,
    )
