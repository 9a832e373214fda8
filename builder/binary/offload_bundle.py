"""The offload bundles of HIP in a library, plain or compressed."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from builder.binary import unpacking
from builder.binary.device_image import Budget, Group, Image, Stored, damaged, find
from builder.binary.elf_symbols import Data
from builder.binary.unpacking import Unpacker, UnpackError

_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_BUNDLE_ENTRY = struct.Struct("<QQQ")
_MOST_TARGETS = 4096
_LONGEST_TARGET = 256
_PACKED_MAGIC = b"CCOB"
_PACKED_HEADERS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_ZLIB = 0
_STEP = 1 << 14


def groups(data: Data, budget: Budget) -> Iterator[Group]:
    """Yield what each bundle has.

    Raises:
        DeviceCodeError: a bundle is damaged, or packed in a way that cannot be read here.
    """
    for at, bundle in _bundles(data, budget):
        yield frozenset(image for image, _ in _bundle(bundle, at, budget))


def sizes(data: Data, budget: Budget) -> Iterator[Stored]:
    """Yield each piece of code, with its share of the bytes that its bundle takes in the file.

    Raises:
        DeviceCodeError: a bundle is damaged, or packed in a way that cannot be read here.
    """
    for at, bundle in _bundles(data, budget):
        compressed = isinstance(bundle, _Packed)
        for image, size in _bundle(bundle, at, budget):
            part = size * bundle.stored // max(bundle.size, 1)
            yield Stored(image=image, size=part, compressed=compressed)


def _bundles(data: Data, budget: Budget) -> Iterator[tuple[int, "_Bytes"]]:
    for at in find(data, _BUNDLE_MAGIC, budget):
        yield at, _Plain(data, at, len(data) - at)
    for at in find(data, _PACKED_MAGIC, budget):
        packed = _packed(data, at, budget)
        if packed is not None:
            yield at, packed


class _Bytes(Protocol):
    """The bytes of a bundle, whose table stands at its beginning."""

    @property
    def size(self) -> int:
        """All its bytes, when unpacked."""

    @property
    def stored(self) -> int:
        """The bytes that it takes in the file."""

    def read(self, start: int, end: int) -> bytes:
        """Return a part, cut off at the end."""


@dataclass(frozen=True, slots=True)
class _Plain:
    data: Data
    at: int
    size: int

    @property
    def stored(self) -> int:
        return self.size

    def read(self, start: int, end: int) -> bytes:
        return bytes(self.data[self.at + start : self.at + end])


@dataclass(slots=True)
class _Packed:
    """A compressed bundle, unpacked as far as it is read."""

    data: Data
    at: int
    stop: int
    size: int
    stored: int
    unpacker: Unpacker
    content: bytearray = field(default_factory=bytearray)

    def read(self, start: int, end: int) -> bytes:
        while len(self.content) < end and not self.unpacker.eof:
            before = self.at
            try:
                piece = self.unpacker.more(self._feed)
            except UnpackError:
                break  # what is missing is missed by who reads
            if not piece and before == self.at:
                break
            self.content += piece
        return bytes(self.content[start:end])

    def _feed(self) -> bytes:
        block = bytes(self.data[self.at : min(self.at + _STEP, self.stop)])
        self.at += len(block)
        return block


def _bundle(bundle: _Bytes, at: int, budget: Budget) -> Iterator[tuple[Image, int]]:
    cursor = len(_BUNDLE_MAGIC)
    count = int.from_bytes(bundle.read(cursor, cursor + 8), "little")
    if cursor + 8 > bundle.size or count > _MOST_TARGETS:
        return  # the text of the magic alone, as a runtime library has it
    cursor += 8
    for _ in range(count):
        budget.spend("targets of offload bundles")
        row = bundle.read(cursor, cursor + _BUNDLE_ENTRY.size)
        if len(row) < _BUNDLE_ENTRY.size:
            raise damaged(budget.name, "offload bundle", at)
        offset, size, length = _BUNDLE_ENTRY.unpack(row)
        cursor += _BUNDLE_ENTRY.size
        if length > _LONGEST_TARGET or cursor + length > bundle.size or offset + size > bundle.size:
            raise damaged(budget.name, "offload bundle", at)
        target = bundle.read(cursor, cursor + length).decode("ascii", "backslashreplace")
        cursor += length
        kind, _, arch = target.partition("--")
        if size and not kind.startswith("host"):
            yield Image(kind="gcn", arch=arch), size


def _packed(data: Data, at: int, budget: Budget) -> _Packed | None:
    if at + 8 > len(data):
        return None
    version, method = struct.unpack_from("<HH", data, at + 4)
    layout = _PACKED_HEADERS.get(version)
    if layout is None or method > 1 or at + layout.size > len(data):
        return None  # these four letters happen to be in code or data
    fields = layout.unpack_from(data, at)
    size, stop = (fields[3], len(data)) if version == 1 else (fields[4], at + fields[3])
    budget.unpack(size)
    unpacker: Unpacker = unpacking.Zlib() if method == _ZLIB else unpacking.Zstandard()
    bundle = _Packed(data, at + layout.size, stop, size, stop - at, unpacker)
    if stop > len(data) or bundle.read(0, len(_BUNDLE_MAGIC)) != _BUNDLE_MAGIC:
        raise damaged(budget.name, "offload bundle", at)
    return bundle
