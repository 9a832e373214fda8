"""Read HIP's offload bundles in a library, plain or compressed."""

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.binary import gcn_functions
from builder.binary.device_image import Group, Image, Stored, UnpackingBudget
from builder.binary.elf_file import Data
from builder.binary.functions import Function
from builder.binary.unpacking import UnpackError, zlib_pieces, zstandard_pieces

_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_BUNDLE_ENTRY = struct.Struct("<QQQ")
_MOST_TARGETS = 4096
_LONGEST_TARGET = 256
_PACKED_MAGIC = b"CCOB"
_PACKED_HEADERS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_METHODS = {0: zlib_pieces, 1: zstandard_pieces}
_STEP = 1 << 14


def groups(data: Data, budget: UnpackingBudget) -> Iterator[Group]:
    """Yield the images of each bundle.

    Raises:
        DeviceCodeError: a bundle is damaged, or has an unknown compression.
    """
    for bundle in _bundles(data, budget):
        yield frozenset(image for image, _, _ in _images(bundle, budget))


def sizes(data: Data, budget: UnpackingBudget) -> Iterator[Stored]:
    """Yield each image, with its share of its bundle's size in the file.

    Raises:
        DeviceCodeError: a bundle is damaged, or has an unknown compression.
    """
    for bundle in _bundles(data, budget):
        for image, _, size in _images(bundle, budget):
            part = size * bundle.stored // max(bundle.size, 1)
            yield Stored(image=image, size=part, compressed=bundle.pieces is not None)


def functions(data: Data, budget: UnpackingBudget) -> Iterator[tuple[Image, Function]]:
    """Yield each function of the code objects of each bundle.

    Raises:
        DeviceCodeError: a bundle or a code object is damaged, or packed in a way that cannot be read here.
    """
    for bundle in _bundles(data, budget):
        for image, start, size in _images(bundle, budget):
            budget.unpack(size, "code objects")
            content = bundle.read(start, start + size)
            for function in gcn_functions.functions(content, budget, at=bundle.at):
                yield image, function


@dataclass(slots=True)
class _Bundle:
    """A bundle, which begins with its table; a compressed bundle is unpacked only as far as it is read."""

    data: Data
    at: int
    size: int
    """Its unpacked size."""
    stored: int
    """Its size in the file."""
    pieces: Iterator[bytes] | None = None
    """Its content, unpacked; None if the bundle is not compressed."""
    content: bytearray = field(default_factory=bytearray)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, or fewer if the bundle ends before."""
        if self.pieces is None:
            return bytes(self.data[self.at + start : self.at + end])
        with contextlib.suppress(UnpackError):  # the caller notices missing bytes
            while len(self.content) < end and (piece := next(self.pieces, None)) is not None:
                self.content += piece
        return bytes(self.content[start:end])


def _bundles(data: Data, budget: UnpackingBudget) -> Iterator[_Bundle]:
    for at in budget.find(data, _BUNDLE_MAGIC):
        yield _Bundle(data, at, len(data) - at, len(data) - at)
    for at in budget.find(data, _PACKED_MAGIC):
        if at + 8 > len(data):
            continue
        version, method = struct.unpack_from("<HH", data, at + 4)
        layout = _PACKED_HEADERS.get(version)
        if layout is None or method not in _METHODS or at + layout.size > len(data):
            continue  # these four letters occur in code or data by chance
        fields = layout.unpack_from(data, at)
        size, stop = (fields[3], len(data)) if version == 1 else (fields[4], at + fields[3])
        budget.unpack(size)
        blocks = _blocks(data, at + layout.size, stop)
        bundle = _Bundle(data, at, size, stop - at, _METHODS[method](blocks))
        if stop > len(data) or bundle.read(0, len(_BUNDLE_MAGIC)) != _BUNDLE_MAGIC:
            raise budget.damaged("offload bundle", at)
        yield bundle


def _blocks(data: Data, start: int, stop: int) -> Iterator[bytes]:
    for at in range(start, stop, _STEP):
        yield bytes(data[at : min(at + _STEP, stop)])


def _images(bundle: _Bundle, budget: UnpackingBudget) -> Iterator[tuple[Image, int, int]]:
    """Yield what is for a GPU, with where it is in the bundle and its size, both when unpacked."""
    cursor = len(_BUNDLE_MAGIC)
    count = int.from_bytes(bundle.read(cursor, cursor + 8), "little")
    if cursor + 8 > bundle.size or count > _MOST_TARGETS:
        return  # only the magic number itself, as a runtime library contains it
    cursor += 8
    for _ in range(count):
        budget.spend("targets of offload bundles")
        row = bundle.read(cursor, cursor + _BUNDLE_ENTRY.size)
        if len(row) < _BUNDLE_ENTRY.size:
            raise budget.damaged("offload bundle", bundle.at)
        offset, size, length = _BUNDLE_ENTRY.unpack(row)
        cursor += _BUNDLE_ENTRY.size
        if length > _LONGEST_TARGET or cursor + length > bundle.size or offset + size > bundle.size:
            raise budget.damaged("offload bundle", bundle.at)
        target = bundle.read(cursor, cursor + length).decode("ascii", "backslashreplace")
        cursor += length
        kind, _, arch = target.partition("--")
        if size and not kind.startswith("host"):
            yield Image(kind="gcn", arch=arch), offset, size
