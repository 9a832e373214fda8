"""Files that cost their reader much more than their maker: each a few kilobytes in a wheel."""

import struct
from collections.abc import Iterable, Mapping

from tests.given.device_code import fatbin, image, packed

PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
HASH, STRTAB, SYMTAB, RELA, RELASZ, STRSZ, NEEDED = 4, 5, 6, 7, 8, 10, 1
GNU_HASH, VERNEED = 0x6FFFFEF5, 0x6FFFFFFE
MIB = 1 << 20


def elf(
    parts: Mapping[str, bytes] = {},
    tags: Iterable[tuple[int, int | str]] = (),
    *,
    segments: Iterable[tuple[int, int, str]] = (),
    machine: int = 62,
) -> bytes:
    """Return a shared library of these parts; a tag's value is a number or the part whose address it is.

    `segments` are further program headers: type, flags and the part that they show.
    """
    parts = {"strings": b"\0", **parts}
    extra = tuple(segments)
    at = 64 + 56 * (2 + len(extra))
    places = {}
    for name, content in parts.items():
        places[name] = (at, len(content))
        at += len(content) + -len(content) % 8
    size = {"size of strings": len(parts["strings"])}
    known = {STRTAB: "strings", STRSZ: "size of strings"}
    rows = [*tags, *((tag, name) for tag, name in known.items()), (0, 0)]
    values = {name: place[0] for name, place in places.items()} | size
    dynamic = b"".join(struct.pack("<QQ", tag, values.get(value, value)) for tag, value in rows)
    end = at + len(dynamic)
    headers = [struct.pack("<IIQQQQQQ", PT_LOAD, 4, 0, 0, 0, end, end, 8)]
    headers.append(struct.pack("<IIQQQQQQ", PT_DYNAMIC, 4, at, at, at, len(dynamic), len(dynamic), 8))
    headers += [struct.pack("<IIQQQQQQ", kind, flags, *(places[name][:1] * 3), *(places[name][1:] * 2), 8)
                for kind, flags, name in extra]  # fmt: skip
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, machine, 1, 0, 64, 0, 0, 64, 56, len(headers), 0, 0, 0
    )
    body = b"".join(content + bytes(-len(content) % 8) for content in parts.values())
    return head + b"".join(headers) + body + dynamic


def symbols(offsets: Iterable[int], *, undefined: bool = True) -> bytes:
    """Return a symbol table whose names are at these offsets."""
    table = [struct.pack("<IBBHQQ", offset, 0x12, 0, 0 if undefined else 1, 0, 0) for offset in offsets]
    return struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0) + b"".join(table)


def with_symbols(strings: bytes, offsets: Iterable[int], *, undefined: bool = True) -> bytes:
    """Return a library with these symbols."""
    table = symbols(offsets, undefined=undefined)
    count = struct.pack("<II", 0, len(table) // 24)
    return elf({"strings": strings, "symbols": table, "hash": count}, [(SYMTAB, "symbols"), (HASH, "hash")])


def versions() -> bytes:
    """Every symbol asks for one version, of each of many libraries."""
    names = b"\0GLIBC_2.99\0" + b"".join(b"l%d\0" % number for number in range(4_000))
    starts = [1 + names[1:].index(b"\0l%d\0" % number) + 1 for number in range(4_000)]
    version = struct.pack("<IHHII", 0, 0, 2, 1, 0)
    rows = [struct.pack("<HHIII", 1, 1, start, 16, 32) + version for start in starts[:-1]]
    rows.append(struct.pack("<HHIII", 1, 1, starts[-1], 16, 0) + version)
    table = symbols([1] * 40_000)
    parts = {
        "strings": names,
        "versions": b"".join(rows),
        "symbols": table,
        "hash": struct.pack("<II", 0, len(table) // 24),
        "indices": struct.pack("<H", 2) * (len(table) // 24),
    }
    return elf(parts, [(VERNEED, "versions"), (SYMTAB, "symbols"), (HASH, "hash"), (0x6FFFFFF0, "indices")])


def bundles() -> bytes:
    """Offload bundles each of whose targets holds the head of another one."""
    magic = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 4096)
    unit = struct.pack("<QQQ", 0, 0, 256) + bytes(224) + magic
    return elf() + magic + unit * 100_000


def packed_bombs() -> bytes:
    target = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    size = 128 * MIB
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1)
    head += struct.pack("<QQQ", 4096, size - 4096, len(target)) + target
    return elf() + packed(head + bytes(size - len(head))) * 300


def cubin_sections() -> bytes:
    head = b"\x7fELF" + bytes(36) + struct.pack("<Q", 64) + bytes(10) + struct.pack("<HHH", 64, 65_000, 0)
    one = head + bytes(64 * 65_000)
    return elf() + fatbin(image(2, 80, content=one) * 48)


def macho() -> bytes:
    """Return a library for macOS whose symbols share one long name."""
    count, names = 20_000, b"\0_" + b"a" * 260_000 + b"\0"
    table = struct.pack("<IBBHQ", 1, 1, 0, 0, 0) * count
    at = 32 + 24
    command = struct.pack("<IIIIII", 2, 24, at, count, at + len(table), len(names))
    return struct.pack("<IiiIIIII", 0xFEEDFACF, 0x0100000C, 0, 6, 1, len(command), 0, 0) + command + table + names


def of_one_name(name: bytes, offsets: Iterable[int] = (1,), *, undefined: bool = True) -> bytes:
    """Return a library whose symbols have this name, from these offsets on."""
    return with_symbols(b"\0" + name + b"\0", offsets, undefined=undefined)


LIBRARIES = {
    "long_needed": lambda: elf({"strings": b"\0" + b"a" * 260_000 + b"\0"}, [(NEEDED, 1)] * 20_000),
    "long_symbols": lambda: of_one_name(b"a" * 260_000, [1] * 20_000),
    "many_symbols": lambda: of_one_name(b"a", [1] * 4_000_000),
    "mangled": lambda: of_one_name(b"_Z" + b"N2at" * 1_200 + b"N3c10", range(1, 200)),
    "mangled_definition": lambda: of_one_name(
        b"_Z" + b"S" * 20_000 + b"N5torch6stable" * 3_000, [1] * 20, undefined=False
    ),
    "mangled_number": lambda: of_one_name(b"_ZN2at" + b"1" * 5_000 + b"Ev"),
    "notes": lambda: elf({"notes": bytes(40 * MIB)}, segments=[(PT_NOTE, 4, "notes")] * 8),
    "code": lambda: elf(
        {"code": (b"\x48\xb8" + bytes(5) + b"\x00\x0a\x02") * (8 * MIB // 10)}, segments=[(PT_LOAD, 5, "code")] * 2_000
    ),
    "code_of_aarch64": lambda: elf(
        {"code": b"\x40\x41\xe0\xd2" * (16 * MIB)}, segments=[(PT_LOAD, 5, "code")], machine=183
    ),
    # Many program headers, in each of which many versions are looked up.
    "headers": lambda: elf(
        {
            "strings": b"\0a\0",
            "none": b"",
            "versions": (struct.pack("<HHIII", 1, 1, 1, 16, 32) + struct.pack("<IHHII", 0, 0, 2, 1, 0)) * 16_000,
            "hash": bytes(8),
        },
        [(VERNEED, "versions"), (HASH, "hash"), (SYMTAB, "hash")],
        segments=[(PT_LOAD, 4, "none")] * 60_000,
    ),
    "versions": versions,
    "tags": lambda: elf(tags=[(100, 0)] * 4_000_000),
    "chain": lambda: elf(
        {"hash": struct.pack("<IIIII", 1, 1, 0, 0, 1) + bytes(120 * MIB), "symbols": bytes(48)},
        [(GNU_HASH, "hash"), (SYMTAB, "symbols")],
    ),
    "buckets": lambda: elf(
        {"hash": struct.pack("<IIII", 40 << 20, 1, 0, 0) + bytes(161 * MIB), "symbols": bytes(48)},
        [(GNU_HASH, "hash"), (SYMTAB, "symbols")],
    ),
    "relocations": lambda: elf(
        {"rows": bytes(168 * MIB), "symbols": bytes(48)}, [(RELA, "rows"), (RELASZ, 168 * MIB), (SYMTAB, "symbols")]
    ),
    "bundles": bundles,
    "packed_bombs": packed_bombs,
    # Compressed bundles without number, in the data of one another.
    "packed_heads": lambda: elf() + struct.pack("<4sHHIIQ", b"CCOB", 2, 0, 4096, 64, 7) * (4 * MIB),
    "images": lambda: elf() + fatbin(image(2, 80, content=b"") * (2 * MIB)),
    "magics": lambda: elf() + struct.pack("<I", 0xBA55ED50) * (48 * MIB),
    "cubin_sections": cubin_sections,
    "macho": macho,
}
"""What it is -> the function that makes it."""
