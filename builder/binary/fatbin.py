"""Read CUDA's fat binaries in a library: machine code and PTX, plain or compressed."""

import bisect
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from builder.binary import cubin, cubin_functions, unpacking
from builder.binary.device_image import Contents, DeviceCodeError, Group, Image, Ranges, Stored, UnpackingBudget
from builder.binary.elf_file import Data
from builder.binary.functions import Function
from builder.binary.unpacking import UnpackError
from builder.untrusted import merged

_FATBIN = struct.Struct("<IHHQ")
_FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
_IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "ptx", 2: "sass", 8: "lto"}
_LZ4, _ZSTANDARD = 0x2000, 0x8000
_ARCH_SPECIFIC, _FAMILY_SPECIFIC = 1 << 20, 1 << 21

_LARGEST_EMPTY = 1 << 12
"""The most bytes of a cubin that may have no kernel; nvcc's empty ones stay below 1,500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImageEntry:
    """An image, as a fat binary stores it."""

    image: Image
    flags: int
    header: int
    """The offset of its header, which comes directly before the image."""
    start: int
    end: int
    whole: int
    """Its unpacked size; 0 if it is not compressed."""

    @property
    def compressed(self) -> bool:
        """Whether the image is compressed."""
        return self.flags & (_LZ4 | _ZSTANDARD) != 0


def groups(data: Data, budget: UnpackingBudget, *, without: Ranges) -> Iterator[Group]:
    """Yield the images of each fat binary outside the ranges `without`, but no empty cubins.

    Raises:
        DeviceCodeError: a fat binary is damaged, or cannot be read here.
    """
    for _, start, end in _fatbins(data, budget, without):
        yield frozenset(
            stored.image
            for stored in _images(data, start, end, budget)
            if stored.image.kind != "sass" or not _is_empty(data, stored, budget)
        )


def sizes(data: Data, budget: UnpackingBudget, *, without: Ranges) -> Iterator[Stored]:
    """Yield each image outside the ranges `without`.

    Raises:
        DeviceCodeError: a fat binary is damaged.
    """
    for _, start, end in _fatbins(data, budget, without):
        for stored in _images(data, start, end, budget):
            yield Stored(image=stored.image, size=stored.end - stored.start, compressed=stored.compressed)


def trimmed(name: str, data: bytes, *, keep: Callable[[Contents], Group], without: Ranges = ()) -> bytes:
    """Return the library `name` with only the images that `keep` selects from each fat binary; its size stays the same.

    Zeros fill the rest of a fat binary, so that nothing else in the library moves. A fat binary of which `keep` selects
    nothing keeps its smallest machine code: the driver finds a valid fat binary without code for its GPU.

    Raises:
        DeviceCodeError: a fat binary is damaged.
    """
    content, budget = bytearray(data), UnpackingBudget.of(name, data)
    for at, start, end in _fatbins(data, budget, without):
        images = tuple(_images(data, start, end, budget))
        wanted = keep(_contents(data, images, budget))
        chosen = [stored for stored in images if stored.image in wanted]
        rest = chosen or sorted(images, key=lambda stored: (stored.image.kind != "sass", stored.end - stored.start))[:1]
        packed = b"".join(data[stored.header : stored.end] for stored in rest)
        content[start:end] = packed.ljust(end - start, b"\0")
        _FATBIN.pack_into(content, at, *_FATBIN.unpack_from(data, at)[:3], len(packed))
    return bytes(content)


def entries(name: str, data: Data) -> Iterator[tuple[Image, bytes]]:
    """Yield every image of the library `name`, in order, with its stored content.

    Raises:
        DeviceCodeError: a fat binary is damaged.
    """
    budget = UnpackingBudget.of(name, data)
    for _, start, end in _fatbins(data, budget, ()):
        for stored in _images(data, start, end, budget):
            yield stored.image, bytes(data[stored.start : stored.end])


def functions(data: Data, budget: UnpackingBudget, *, without: Ranges) -> Iterator[tuple[Image, Function]]:
    """Yield each function of the machine code outside of the ranges `without`.

    Raises:
        DeviceCodeError: a fat binary or a cubin is damaged.
        ToolError: this Python does not unpack Zstandard.
    """
    for _, start, end in _fatbins(data, budget, without):
        for stored in _images(data, start, end, budget):
            if stored.image.kind == "sass":
                budget.unpack(stored.whole if stored.compressed else stored.end - stored.start, "cubins")
                content = _content(data, stored, budget)
                for function in cubin_functions.functions(content, budget, at=stored.start):
                    yield stored.image, function


def _contents(data: Data, images: Iterable[_ImageEntry], budget: UnpackingBudget) -> Contents:
    """Return the content of each image; an image that occurs twice is left out, since its two contents may differ."""
    contents: dict[Image, Callable[[], bytes]] = {}
    for stored in images:
        contents[stored.image] = bytes if stored.image in contents else partial(_content, data, stored, budget)
    return contents


def _content(data: Data, stored: _ImageEntry, budget: UnpackingBudget) -> bytes:
    """Unpack an image.

    Raises:
        DeviceCodeError: it is damaged.
        ToolError: this Python cannot unpack Zstandard.
    """
    packed = bytes(data[stored.start : stored.end])
    if not stored.compressed:
        return packed
    try:
        if stored.flags & _LZ4:
            return unpacking.lz4(packed, stored.whole)
        return unpacking.first(unpacking.zstandard_pieces(iter((packed,))), stored.whole)
    except UnpackError:
        raise budget.damaged("fat binary", stored.start) from None


def _fatbins(data: Data, budget: UnpackingBudget, without: Ranges) -> Iterator[tuple[int, int, int]]:
    """Yield the place of each fat binary outside the ranges `without`: its header, its first image, its end."""
    left_out, end = merged(without), 0
    for at in budget.find(data, _FATBIN_MAGIC):
        if at < end or at + _FATBIN.size > len(data):
            continue
        _, version, header, size = _FATBIN.unpack_from(data, at)
        if version != 1 or header < _FATBIN.size:
            continue  # these four bytes occur in code or data by chance
        end = at + header + size
        if end > len(data):
            raise budget.damaged("fat binary", at)
        before = bisect.bisect_right(left_out, (at, len(data))) - 1
        if before < 0 or at >= sum(left_out[before]):
            yield at, at + header, end


def _images(data: Data, at: int, end: int, budget: UnpackingBudget) -> Iterator[_ImageEntry]:
    """Yield each image of a fat binary, and how it is stored."""
    while at < end:
        budget.spend("CUDA images")
        if at + _IMAGE.size > end:
            raise budget.damaged("fat binary", at)
        kind, _, header, size, _, _, minor, major, arch, _, _, flags, _, whole = _IMAGE.unpack_from(data, at)
        if header < _IMAGE.size or at + header + size > end:
            raise budget.damaged("fat binary", at)
        if kind not in _KINDS:
            raise DeviceCodeError(
                f"'{budget.name}' has device code of unknown kind {kind} for {_capability(arch, flags)}",
                help="a newer CUDA than this audit knows made it; update builder",
            )
        content = at + header
        version = f"{major}.{minor}" if _KINDS[kind] == "ptx" else None
        image = Image(kind=_KINDS[kind], arch=_capability(arch, flags), version=version)
        yield _ImageEntry(image=image, flags=flags, header=at, start=content, end=content + size, whole=whole)
        at = content + size


def _capability(arch: int, flags: int) -> str:
    suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    return f"{arch // 10}.{arch % 10}{suffix}"


def _is_empty(data: Data, stored: _ImageEntry, budget: UnpackingBudget) -> bool:
    """Whether a cubin has no kernel and no data; nvcc adds such cubins when it links.

    If the link names no architecture, nvcc adds them for its default one, which nobody asked for.
    """
    if stored.compressed:
        if stored.whole > _LARGEST_EMPTY:
            return False
        content = _content(data, stored, budget)
        return cubin.has_no_code(content, 0, len(content), budget)
    return cubin.has_no_code(data, stored.start, stored.end, budget)
