"""Read one member of a zip archive in pieces, and never more than its stated size."""

import contextlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from builder.errors import BuilderError

PIECE = 1 << 20
_READ = 1 << 18
_LOCAL = struct.Struct("<4s5H3I2H")
LOCAL_HEADER = _LOCAL.size
_MAGIC = b"PK\x03\x04"
_UTF_8 = 0x800
_ENCRYPTED = 0x1
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class WheelError(BuilderError):
    """A file that is not a wheel, or is unsafe to read."""


@dataclass(frozen=True, slots=True)
class Zipped:
    """A member of an archive."""

    archive: Path
    info: zipfile.ZipInfo
    opened: BinaryIO | None = None
    """The archive, where it is held open: to open a file takes longer than to read a small member."""

    @property
    def size(self) -> int:
        """Bytes when unpacked."""
        return self.info.file_size

    @property
    def mode(self) -> int:
        """Permission bits."""
        return stat.S_IMODE(self.info.external_attr >> 16)

    def read(self) -> bytes:
        """Return the content."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces.

        Raises:
            WheelError: it is damaged, or is not what the directory of the archive says.
        """
        try:
            with self.archive.open("rb") if self.opened is None else contextlib.nullcontext(self.opened) as file:
                yield from self._checked(file)
        except (OSError, EOFError, zlib.error, struct.error) as error:
            raise WheelError(f"'{self.archive}' is damaged at '{self.info.filename}': {error}") from error

    def _checked(self, file: BinaryIO) -> Iterator[bytes]:
        size = checksum = 0
        for piece in filter(None, _unpacked(file, self.info)):
            size += len(piece)
            if size > self.info.file_size:
                break
            checksum = zlib.crc32(piece, checksum)
            yield piece
        if size != self.info.file_size:
            raise EOFError(f"it does not have the {self.info.file_size} bytes that it states")
        if checksum != self.info.CRC:
            raise EOFError("its checksum is another")


def why_not_readable(info: zipfile.ZipInfo) -> str | None:
    """Return why a member cannot be read here, or None."""
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in METHODS:
        return f"is compressed by method {info.compress_type}, and wheels are by deflate or not at all"
    return None


def _unpacked(file: BinaryIO, info: zipfile.ZipInfo) -> Iterator[bytes]:
    _seek_content(file, info)
    packed = _packed(file, info.compress_size)
    if info.compress_type == zipfile.ZIP_STORED:
        yield from packed
        return
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for block in packed:
        waiting = block
        while waiting and not inflate.eof:
            yield inflate.decompress(waiting, PIECE)
            waiting = inflate.unconsumed_tail
    while not inflate.eof:
        rest = inflate.decompress(b"", PIECE)
        if not rest:
            raise EOFError("its compressed data has no end")
        yield rest


def _seek_content(file: BinaryIO, info: zipfile.ZipInfo) -> None:
    """Go to the content, past a local header that must agree with the directory: readers differ in which they use."""
    file.seek(info.header_offset)
    magic, _, flags, method, _, _, _, _, _, name_size, extra_size = _LOCAL.unpack(file.read(_LOCAL.size))
    name = file.read(name_size).decode("utf-8" if flags & _UTF_8 else "cp437", "replace")
    if magic != _MAGIC or method != info.compress_type or flags & _ENCRYPTED or name != info.orig_filename:
        raise EOFError("the header before it does not say what the directory of the archive says")
    file.seek(extra_size, 1)


def _packed(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0:
        block = file.read(min(size, _READ))
        if not block:
            raise EOFError("it is cut off")
        size -= len(block)
        yield block
