"""The device code that is really in a shared object: CUDA fat binaries and HIP offload bundles."""

import bisect
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from builder.binary.elf_symbols import Data
from builder.errors import BuilderError
from builder.untrusted import merged

_FATBIN = struct.Struct("<IHHQ")
_FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
_IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "ptx", 2: "sass", 8: "lto"}
_COMPRESSED = 0xA000
"""LZ4 (0x2000) and Zstandard (0x8000)."""
_ARCH_SPECIFIC, _FAMILY_SPECIFIC = 1 << 20, 1 << 21

_CUBIN = struct.Struct("<40xQ10xHHH")
_CUBIN_SECTION = struct.Struct("<IIQQQQIIQQ")

_FILLED = (b".text.", b".nv.global", b".nv.constant", b".merc.text")

_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_BUNDLE_ENTRY = struct.Struct("<QQQ")
_MOST_TARGETS = 4096
_LONGEST_TARGET = 256
_PACKED_MAGIC = b"CCOB"
_PACKED_HEADERS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_ZLIB = 0
_LARGEST_BUNDLES = 256 << 20
_MAX_RATIO = 32
"""How often a library's own size all its compressed bundles may unpack to, beyond `_LARGEST_BUNDLES`."""
_STEP = 1 << 14

# A library with 200 MB of device code for ten architectures has some thousands of each.
_MOST_MAGICS = 1 << 16
_MOST_IMAGES = 1 << 17
_MOST_SECTIONS = 1 << 20
_MOST_ENTRIES = 1 << 19


class DeviceCodeError(BuilderError):
    """Device code that cannot be read; nothing can be said about its architectures."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Image:
    """One piece of device code."""

    kind: str
    """`sass`, `ptx`, `lto` or `gcn`."""
    arch: str
    """As a capability (`9.0a`) or a target (`gfx90a`, with its features)."""
    version: str | None = field(default=None, compare=False)
    """Version of the language, of PTX: such as `9.0`."""

    def __str__(self) -> str:
        return {"sass": "machine code for {}", "ptx": "PTX for {}", "lto": "LTO code for {}", "gcn": "code for {}"}[
            self.kind
        ].format(self.arch)


Group = frozenset[Image]
"""The device code of one source, or of what was linked as one: a loader chooses one image of each group."""
Ranges = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Budget:
    """How much of one library may still be read: its parts can point at each other, and would be read forever."""

    name: str
    unpacked: int
    """Bytes that its compressed bundles may still claim to unpack to."""
    left: dict[str, int] = field(
        default_factory=lambda: {
            "marks of device code": _MOST_MAGICS,
            "CUDA images": _MOST_IMAGES,
            "sections of cubins": _MOST_SECTIONS,
            "targets of offload bundles": _MOST_ENTRIES,
        }
    )

    def spend(self, what: str) -> None:
        """Count one of these.

        Raises:
            DeviceCodeError: there were too many.
        """
        self.left[what] -= 1
        if self.left[what] < 0:
            raise DeviceCodeError(
                f"'{self.name}' has more {what} than are read", help="split the kernel, or compile it for fewer targets"
            )

    def unpack(self, size: int) -> None:
        """Count what a compressed bundle unpacks to, wherever it is unpacked.

        Raises:
            DeviceCodeError: it is more than device code of that size has.
        """
        self.unpacked -= size
        if self.unpacked < 0:
            raise DeviceCodeError(
                f"'{self.name}' has compressed offload bundles that unpack to more than {_MAX_RATIO} times its size",
                help="compile with --no-offload-compress",
            )


def _budget(name: str, data: Data) -> _Budget:
    return _Budget(name, max(_LARGEST_BUNDLES, _MAX_RATIO * len(data)))


def groups(name: str, data: Data, *, without: Ranges = ()) -> frozenset[Group]:
    """Return the device code in the file `name`, except in the ranges (offset, size) of `without`, by what is one.

    The whole file is searched, so a renamed section or a file without section headers hides nothing. Equal groups
    are one.

    Raises:
        DeviceCodeError: a fat binary or a bundle is damaged, or packed in a way that cannot be read here.
    """
    budget = _budget(name, data)
    return frozenset({*_cuda(data, without, budget), *_hip(data, budget)} - {frozenset()})


def read(name: str, data: Data, *, without: Ranges = ()) -> frozenset[Image]:
    """Return all device code in the file `name`, except in the ranges (offset, size) of `without`.

    Raises:
        DeviceCodeError: a fat binary or a bundle is damaged, or packed in a way that cannot be read here.
    """
    return frozenset().union(*groups(name, data, without=without))


def entries(name: str, data: Data) -> tuple[tuple[Image, bytes], ...]:
    """Return every piece of device code in the fat binaries of CUDA, in order, with its content as it is stored.

    Raises:
        DeviceCodeError: a fat binary is damaged.
    """
    budget = _budget(name, data)
    return tuple(
        (image, bytes(data[content : content + size]))
        for _, start, end in _fatbins(data, budget)
        for image, _, content, size in _images(data, start, end, budget)
    )


def images_of(archs: tuple[str, ...]) -> frozenset[Image]:
    """Return the device code that a list such as `9.0a 12.0+PTX` or `gfx90a` promises."""
    images: set[Image] = set()
    for arch in archs:
        if arch.startswith("gfx"):
            images.add(Image(kind="gcn", arch=arch))
            continue
        images.add(Image(kind="sass", arch=arch.removesuffix("+PTX")))
        if arch.endswith("+PTX"):
            images.add(Image(kind="ptx", arch=arch.removesuffix("+PTX")))
    return frozenset(images)


def _find(data: Data, magic: bytes, budget: _Budget) -> Iterator[int]:
    at = data.find(magic, 0)  # a map searches from where it was read to
    while at >= 0:
        budget.spend("marks of device code")
        yield at
        at = data.find(magic, at + len(magic))


def _cuda(data: Data, without: Ranges, budget: _Budget) -> Iterator[Group]:
    left_out = merged(without)
    for at, start, end in _fatbins(data, budget):
        before = bisect.bisect_right(left_out, (at, len(data))) - 1
        if before >= 0 and at < sum(left_out[before]):
            continue
        yield frozenset(
            image
            for image, flags, content, size in _images(data, start, end, budget)
            if image.kind != "sass" or flags & _COMPRESSED or not _is_empty(data, content, content + size, budget)
        )


def _fatbins(data: Data, budget: _Budget) -> Iterator[tuple[int, int, int]]:
    """Yield where each fat binary is: its header, its first image, its end."""
    end = 0
    for at in _find(data, _FATBIN_MAGIC, budget):
        if at < end or at + _FATBIN.size > len(data):
            continue
        _, version, header, size = _FATBIN.unpack_from(data, at)
        if version != 1 or header < _FATBIN.size:
            continue  # these four bytes happen to be in code or data
        end = at + header + size
        if end > len(data):
            raise _damaged(budget.name, "fat binary", at)
        yield at, at + header, end


def _images(data: Data, at: int, end: int, budget: _Budget) -> Iterator[tuple[Image, int, int, int]]:
    """Yield every image of a fat binary, with its flags, and where its content is: offset, size."""
    while at < end:
        budget.spend("CUDA images")
        if at + _IMAGE.size > end:
            raise _damaged(budget.name, "fat binary", at)
        kind, _, header, size, _, _, minor, major, arch, _, _, flags, _, _ = _IMAGE.unpack_from(data, at)
        if header < _IMAGE.size or at + header + size > end:
            raise _damaged(budget.name, "fat binary", at)
        if kind not in _KINDS:
            raise DeviceCodeError(
                f"'{budget.name}' has device code of unknown kind {kind} for {_capability(arch, flags)}",
                help="a newer CUDA than this audit knows made it; update builder",
            )
        content = at + header
        version = f"{major}.{minor}" if _KINDS[kind] == "ptx" else None
        yield Image(kind=_KINDS[kind], arch=_capability(arch, flags), version=version), flags, content, size
        at = content + size


def _capability(arch: int, flags: int) -> str:
    suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    return f"{arch // 10}.{arch % 10}{suffix}"


def _is_empty(data: Data, start: int, end: int, budget: _Budget) -> bool:
    """Whether a cubin has no kernel and no data: nvcc adds such ones when it links.

    It makes them for its default architecture when the link names none, although nobody asked for that one.
    """
    if end - start < _CUBIN.size or data[start : start + 4] != b"\x7fELF":
        return False
    offset, entry, count, names = _CUBIN.unpack_from(data, start)
    if entry != _CUBIN_SECTION.size or names >= count or start + offset + entry * count > end:
        return False
    text = start + _CUBIN_SECTION.unpack_from(data, start + offset + names * entry)[4]
    for index in range(count):
        budget.spend("sections of cubins")
        label = text + _CUBIN_SECTION.unpack_from(data, start + offset + index * entry)[0]
        if bytes(data[label : label + 16]).startswith(_FILLED):
            return False
    return True


def _hip(data: Data, budget: _Budget) -> Iterator[Group]:
    for at in _find(data, _BUNDLE_MAGIC, budget):
        yield frozenset(_bundle(_Plain(data, at, len(data) - at), at, budget))
    for at in _find(data, _PACKED_MAGIC, budget):
        packed = _packed(data, at, budget)
        if packed is not None:
            yield frozenset(_bundle(packed, at, budget))


class _Bytes(Protocol):
    """The bytes of a bundle, whose table stands at its beginning."""

    @property
    def size(self) -> int:
        """All its bytes, when unpacked."""

    def read(self, start: int, end: int) -> bytes:
        """Return a part, cut off at the end."""


@dataclass(frozen=True, slots=True)
class _Plain:
    data: Data
    at: int
    size: int

    def read(self, start: int, end: int) -> bytes:
        return bytes(self.data[self.at + start : self.at + end])


@dataclass(slots=True)
class _Packed:
    """A compressed bundle, unpacked as far as it is read."""

    data: Data
    at: int
    stop: int
    size: int
    content: bytearray = field(default_factory=bytearray)
    inflate: "zlib._Decompress" = field(default_factory=zlib.decompressobj)

    def read(self, start: int, end: int) -> bytes:
        while len(self.content) < end and not self.inflate.eof:
            block = bytes(self.data[self.at : min(self.at + _STEP, self.stop)])
            try:
                piece = self.inflate.decompress(block, _STEP)
            except zlib.error:
                break  # what is missing is missed by who reads
            self.at += len(block) - len(self.inflate.unconsumed_tail)
            if not block and not piece:
                break
            self.content += piece
        return bytes(self.content[start:end])


def _bundle(bundle: _Bytes, at: int, budget: _Budget) -> Iterator[Image]:
    cursor = len(_BUNDLE_MAGIC)
    count = int.from_bytes(bundle.read(cursor, cursor + 8), "little")
    if cursor + 8 > bundle.size or count > _MOST_TARGETS:
        return  # the text of the magic alone, as a runtime library has it
    cursor += 8
    for _ in range(count):
        budget.spend("targets of offload bundles")
        row = bundle.read(cursor, cursor + _BUNDLE_ENTRY.size)
        if len(row) < _BUNDLE_ENTRY.size:
            raise _damaged(budget.name, "offload bundle", at)
        offset, size, length = _BUNDLE_ENTRY.unpack(row)
        cursor += _BUNDLE_ENTRY.size
        if length > _LONGEST_TARGET or cursor + length > bundle.size or offset + size > bundle.size:
            raise _damaged(budget.name, "offload bundle", at)
        target = bundle.read(cursor, cursor + length).decode("ascii", "backslashreplace")
        cursor += length
        kind, _, arch = target.partition("--")
        if size and not kind.startswith("host"):
            yield Image(kind="gcn", arch=arch)


def _packed(data: Data, at: int, budget: _Budget) -> _Packed | None:
    if at + 8 > len(data):
        return None
    version, method = struct.unpack_from("<HH", data, at + 4)
    layout = _PACKED_HEADERS.get(version)
    if layout is None or method > 1 or at + layout.size > len(data):
        return None  # these four letters happen to be in code or data
    fields = layout.unpack_from(data, at)
    if method != _ZLIB:
        raise DeviceCodeError(
            f"'{budget.name}' has an offload bundle compressed with Zstandard, which cannot be read here",
            help="compile with --no-offload-compress",
        )
    size, stop = (fields[3], len(data)) if version == 1 else (fields[4], at + fields[3])
    budget.unpack(size)
    bundle = _Packed(data, at + layout.size, stop, size)
    if stop > len(data) or bundle.read(0, len(_BUNDLE_MAGIC)) != _BUNDLE_MAGIC:
        raise _damaged(budget.name, "offload bundle", at)
    return bundle


def _damaged(name: str, what: str, at: int) -> DeviceCodeError:
    return DeviceCodeError(f"'{name}' has a damaged {what} at byte {at}", help="build it again")
