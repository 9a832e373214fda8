"""The device code that is really in a shared object: CUDA fat binaries and HIP offload bundles."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from builder.elf import Data
from builder.errors import BuilderError

_FATBIN = struct.Struct("<IHHQ")
_FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
_IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "ptx", 2: "sass", 8: "lto"}
_COMPRESSED = 0xA000
"""LZ4 (0x2000) and Zstandard (0x8000)."""
_ARCH_SPECIFIC, _FAMILY_SPECIFIC = 1 << 20, 1 << 21

_CUBIN = struct.Struct("<40xQ10xHHH")
_CUBIN_SECTION = struct.Struct("<IIQQQQIIQQ")

_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_BUNDLE_ENTRY = struct.Struct("<QQQ")
_MOST_TARGETS = 4096
_LONGEST_TARGET = 256
_PACKED_MAGIC = b"CCOB"
_PACKED_HEADERS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_ZLIB = 0
_LARGEST_BUNDLE = 4 << 30


class DeviceCodeError(BuilderError):
    """Device code that cannot be read; nothing can be said about its architectures."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Image:
    """One piece of device code."""

    kind: str
    """`sass`, `ptx`, `lto` or `gcn`."""
    arch: str
    """As a capability (`9.0a`) or a target (`gfx90a`, with its features)."""

    def __str__(self) -> str:
        return {"sass": "machine code for {}", "ptx": "PTX for {}", "lto": "LTO code for {}", "gcn": "code for {}"}[
            self.kind
        ].format(self.arch)


Ranges = tuple[tuple[int, int], ...]


def read(name: str, data: Data, *, without: Ranges = ()) -> frozenset[Image]:
    """Return the device code in the file `name`, except in the ranges (offset, size) of `without`.

    The whole file is searched, so a renamed section or a file without section headers hides nothing.

    Raises:
        DeviceCodeError: a fat binary or a bundle is damaged, or packed in a way that cannot be read here.
    """
    return frozenset((*_cuda(name, data, without), *_hip(name, data)))


def entries(name: str, data: Data) -> tuple[tuple[Image, bytes], ...]:
    """Return every piece of device code in the fat binaries of CUDA, in order, with its content as it is stored.

    Raises:
        DeviceCodeError: a fat binary is damaged.
    """
    return tuple(
        (image, bytes(data[content : content + size]))
        for _, start, end in _fatbins(name, data)
        for image, _, content, size in _images(name, data, start, end)
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


def _find(data: Data, magic: bytes) -> Iterator[int]:
    at = data.find(magic, 0)  # a map searches from where it was read to
    while at >= 0:
        yield at
        at = data.find(magic, at + len(magic))


def _cuda(name: str, data: Data, without: Ranges) -> Iterator[Image]:
    for at, start, end in _fatbins(name, data):
        if any(first <= at < first + length for first, length in without):
            continue
        for image, flags, content, size in _images(name, data, start, end):
            if not (image.kind == "sass" and not flags & _COMPRESSED and _is_empty(data, content, content + size)):
                yield image


def _fatbins(name: str, data: Data) -> Iterator[tuple[int, int, int]]:
    """Yield where each fat binary is: its header, its first image, its end."""
    end = 0
    for at in _find(data, _FATBIN_MAGIC):
        if at < end or at + _FATBIN.size > len(data):
            continue
        _, version, header, size = _FATBIN.unpack_from(data, at)
        if version != 1 or header < _FATBIN.size:
            continue  # these four bytes happen to be in code or data
        end = at + header + size
        if end > len(data):
            raise _damaged(name, "fat binary", at)
        yield at, at + header, end


def _images(name: str, data: Data, at: int, end: int) -> Iterator[tuple[Image, int, int, int]]:
    """Yield every image of a fat binary, with its flags, and where its content is: offset, size."""
    while at < end:
        if at + _IMAGE.size > end:
            raise _damaged(name, "fat binary", at)
        kind, _, header, size, _, _, _, _, arch, _, _, flags, _, _ = _IMAGE.unpack_from(data, at)
        if header < _IMAGE.size or at + header + size > end:
            raise _damaged(name, "fat binary", at)
        if kind not in _KINDS:
            raise DeviceCodeError(
                f"'{name}' has device code of unknown kind {kind} for {_capability(arch, flags)}",
                help="a newer CUDA than this audit knows made it; update builder",
            )
        content = at + header
        yield Image(kind=_KINDS[kind], arch=_capability(arch, flags)), flags, content, size
        at = content + size


def _capability(arch: int, flags: int) -> str:
    suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    return f"{arch // 10}.{arch % 10}{suffix}"


def _is_empty(data: Data, start: int, end: int) -> bool:
    """Whether a cubin has no kernel and no data: nvcc adds such ones when it links.

    It makes them for its default architecture when the link names none, which nobody asked for.
    """
    if end - start < _CUBIN.size or data[start : start + 4] != b"\x7fELF":
        return False
    offset, entry, count, names = _CUBIN.unpack_from(data, start)
    if entry != _CUBIN_SECTION.size or names >= count or start + offset + entry * count > end:
        return False
    rows = [_CUBIN_SECTION.unpack_from(data, start + offset + index * entry) for index in range(count)]
    text = start + rows[names][4]
    labels = [bytes(data[text + row[0] : text + row[0] + 16]) for row in rows]
    return not any(label.startswith((b".text.", b".nv.global", b".nv.constant", b".merc.text")) for label in labels)


def _hip(name: str, data: Data) -> Iterator[Image]:
    for at in _find(data, _BUNDLE_MAGIC):
        yield from _bundle(name, data, at)
    for at in _find(data, _PACKED_MAGIC):
        unpacked = _unpack(name, data, at)
        if unpacked is not None:
            yield from _bundle(name, unpacked, 0)


def _bundle(name: str, data: Data, at: int) -> Iterator[Image]:
    cursor = at + len(_BUNDLE_MAGIC)
    if cursor + 8 > len(data):
        return
    count = int.from_bytes(data[cursor : cursor + 8], "little")
    if count > _MOST_TARGETS:
        return  # the text of the magic alone, as a runtime library has it
    cursor += 8
    for _ in range(count):
        if cursor + _BUNDLE_ENTRY.size > len(data):
            raise _damaged(name, "offload bundle", at)
        offset, size, length = _BUNDLE_ENTRY.unpack_from(data, cursor)
        cursor += _BUNDLE_ENTRY.size
        if length > _LONGEST_TARGET or cursor + length > len(data) or at + offset + size > len(data):
            raise _damaged(name, "offload bundle", at)
        target = bytes(data[cursor : cursor + length]).decode("ascii", "backslashreplace")
        cursor += length
        kind, _, arch = target.partition("--")
        if size and not kind.startswith("host"):
            yield Image(kind="gcn", arch=arch)


def _unpack(name: str, data: Data, at: int) -> bytes | None:
    if at + 8 > len(data):
        return None
    version, method = struct.unpack_from("<HH", data, at + 4)
    layout = _PACKED_HEADERS.get(version)
    if layout is None or method > 1 or at + layout.size > len(data):
        return None  # these four letters happen to be in code or data
    fields = layout.unpack_from(data, at)
    if method != _ZLIB:
        raise DeviceCodeError(
            f"'{name}' has an offload bundle compressed with Zstandard, which cannot be read here",
            help="compile with --no-offload-compress",
        )
    unpacked_size = fields[3] if version == 1 else fields[4]
    if unpacked_size > _LARGEST_BUNDLE:
        raise _damaged(name, "offload bundle", at)
    stop = len(data) if version == 1 else at + fields[3]
    try:
        content = zlib.decompressobj().decompress(data[at + layout.size : stop], unpacked_size)
    except zlib.error as error:
        raise _damaged(name, "offload bundle", at) from error
    if len(content) != unpacked_size or not content.startswith(_BUNDLE_MAGIC):
        raise _damaged(name, "offload bundle", at)
    return content


def _damaged(name: str, what: str, at: int) -> DeviceCodeError:
    return DeviceCodeError(f"'{name}' has a damaged {what} at byte {at}", help="build it again")
