"""Read the symbols of a 64-bit ELF file as the dynamic loader does, without relying on section headers."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.binary import elf_file as elf
from builder.binary.elf_file import ElfError, ElfFile, text

_SYMBOL = struct.Struct("<IBBHQQ")
_NEED = struct.Struct("<HHIII")
_NEED_VERSION = struct.Struct("<IHHII")
_SHT_DYNSYM = 11
# libtorch_cpu, the largest library that is read, has 75,000 symbols with 5 MB of names, and 320,000 relocations.
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
    size: int = field(default=0, compare=False)
    version: str | None = None
    """The version required of another library, such as `GLIBC_2.28`."""
    library: str | None = None
    """The library that must have this version."""


def versions(file: ElfFile, strings: bytes) -> dict[int, tuple[str, str]]:
    """Return the required versions: index → (library, version).

    Raises:
        ElfError: the file is damaged there.
    """
    address = file.tag(elf.DT_VERNEED)
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


def symbols(file: ElfFile, strings: bytes) -> Iterator[Symbol]:
    """Yield the dynamic symbols that take part in linking.

    Raises:
        ElfError: the file is damaged there.
    """
    address, count = file.tag(elf.DT_SYMTAB), _symbol_count(file)
    if address is None or count <= 1:
        return
    start = file.offset_of(address, size=count * _SYMBOL.size)
    table = _SYMBOL.iter_unpack(file.data[start : start + count * _SYMBOL.size])
    needs, length = versions(file, strings), 0
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
        yield Symbol(name=name, defined=defined, binding=binding, size=row[5], version=version, library=library)


def _version_indices(file: ElfFile, count: int) -> tuple[int, ...]:
    address = file.tag(elf.DT_VERSYM)
    if address is None:
        return (0,) * count
    return file.unpack(struct.Struct(f"<{count}H"), file.offset_of(address, size=2 * count))


def _symbol_count(file: ElfFile) -> int:
    """Return the length of the symbol table, which no header states.

    The hash tables cover the exported symbols, the relocations every symbol that the loader looks up, and a section
    header perhaps more. The largest of these numbers counts.
    """
    table, hashes = file.tag(elf.DT_SYMTAB), file.tag(elf.DT_HASH)
    listed = (each.size // _SYMBOL.size for each in file.sections if each.type == _SHT_DYNSYM and each.address == table)
    hashed = 0 if hashes is None else file.unpack(struct.Struct("<II"), file.offset_of(hashes, size=8))[1]
    count = max(hashed, _gnu_hashed(file), _relocated(file), *listed)
    if count > _MOST_SYMBOLS:
        raise ElfError(f"it claims {count} dynamic symbols, more than the {_MOST_SYMBOLS} that are read")
    return count


def _gnu_hashed(file: ElfFile) -> int:
    address = file.tag(elf.DT_GNU_HASH)
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


def _relocated(file: ElfFile) -> int:
    """Return one more than the highest symbol that a relocation names."""
    with_addend, without = struct.Struct("<12xI8x"), struct.Struct("<12xI")
    tables = (
        (elf.DT_RELA, elf.DT_RELASZ, with_addend),
        (elf.DT_REL, elf.DT_RELSZ, without),
        (elf.DT_JMPREL, elf.DT_PLTRELSZ, without if file.tag(elf.DT_PLTREL) == elf.DT_REL else with_addend),
    )
    highest = 0
    for where, length, layout in tables:
        address, size = file.tag(where), file.tag(length)
        if address is None or not size:
            continue
        if size > _MOST_RELOCATIONS * layout.size:
            raise ElfError(f"it has {size} bytes of relocations, more than the {_MOST_RELOCATIONS} that are read")
        start, block = file.offset_of(address, size=size), _BLOCK - _BLOCK % layout.size
        end = start + size - size % layout.size
        for at in range(start, end, block):
            highest = max(highest, max(layout.iter_unpack(file.data[at : min(at + block, end)]))[0])
    return 1 + highest
