"""A member of a wheel as its archive has it, so that another archive can have it without compressing it again."""

import stat
import zipfile
import zlib
from dataclasses import dataclass
from typing import BinaryIO

from builder.hashes import digest


@dataclass(frozen=True, slots=True)
class Packed:
    """The content of a member, compressed."""

    content: bytes
    size: int
    """The size that it unpacks to."""
    method: int
    checksum: int
    digest: bytes
    """The sha256 of what it unpacks to."""

    @classmethod
    def of(cls, content: bytes) -> "Packed":
        """Compress a content."""
        deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = deflate.compress(content) + deflate.flush()
        return cls(packed, len(content), zipfile.ZIP_DEFLATED, zlib.crc32(content), digest((content,)))

    def append_to(self, archive: zipfile.ZipFile, file: BinaryIO, info: zipfile.ZipInfo, *, mode: int) -> None:
        """Write it to the file of an archive as `ZipFile.writestr` does, but for compressing it."""
        info.compress_type, info.CRC = self.method, self.checksum
        info.file_size, info.compress_size = self.size, len(self.content)
        info.create_system = 3  # Unix, on every system
        info.external_attr = (stat.S_IFREG | mode) << 16
        info.header_offset = file.tell()
        file.write(info.FileHeader(zip64=info.file_size * 1.05 > zipfile.ZIP64_LIMIT))  # as it guesses
        file.write(self.content)
        archive.filelist.append(info)
        archive.start_dir = file.tell()
