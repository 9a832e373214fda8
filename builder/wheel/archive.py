"""The archive of a wheel: pack the same content to the same bytes, and read it back within limits."""

import contextlib
import io
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from builder.errors import BuilderError
from builder.hashes import digest, record_hash
from builder.untrusted import why_not_a_name
from builder.wheel.packed import Packed
from builder.wording import quoted

EPOCH = 315532800
"""1980-01-01T00:00:00Z, the first time that a zip archive can store."""
LATEST = 4354819198
"""2107-12-31T23:59:58Z, the last time that a zip archive can store."""
MAX_MEMBERS = 1 << 13
MAX_UNPACKED = 256 << 20
"""The unpacked size allowed for any wheel; a large wheel may unpack to `MAX_RATIO` times its own size."""
MAX_RATIO = 32
"""Real wheels are below 10: device code is dense, or is compressed already."""
_ELSEWHERE = frozenset(("", ".", ".."))
"""Parts of a path that do not name a file in a folder; an absolute path begins with an empty part."""
_FILE_MODE = 0o644
_LIBRARY_MODE = 0o755
_PIECE = 1 << 20
_READ = 1 << 18
_LOCAL = struct.Struct("<4s5H3I2H")
_MAGIC = b"PK\x03\x04"
_UTF_8 = 0x800
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class WheelError(BuilderError):
    """A file that is not a wheel, or is unsafe to read."""


@dataclass(frozen=True, slots=True)
class Zipped:
    """A member of an archive."""

    archive: Path
    info: zipfile.ZipInfo
    opened: BinaryIO | None = None
    """The archive, if it is held open: opening it takes longer than reading a small member."""

    @property
    def size(self) -> int:
        """The unpacked size."""
        return self.info.file_size

    @property
    def mode(self) -> int:
        """The permission bits."""
        return stat.S_IMODE(self.info.external_attr >> 16)

    def read(self) -> bytes:
        """Return the content."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces.

        Raises:
            WheelError: it is damaged, or differs from the archive's directory.
        """
        with self._file() as file:
            yield from self._checked(file)

    def packed(self, content: bytes) -> Packed:
        """Return the content as the archive has it, given that which was read.

        Raises:
            WheelError: it is damaged.
        """
        with self._file() as file:
            _seek_content(file, self.info)
            packed = b"".join(_packed(file, self.info.compress_size))
        info = self.info
        return Packed(packed, info.file_size, info.compress_type, info.CRC, digest((content,)))

    @contextlib.contextmanager
    def _file(self) -> Iterator[BinaryIO]:
        try:
            with self.archive.open("rb") if self.opened is None else contextlib.nullcontext(self.opened) as file:
                yield file
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
            yield inflate.decompress(waiting, _PIECE)
            waiting = inflate.unconsumed_tail
    while not inflate.eof:
        rest = inflate.decompress(b"", _PIECE)
        if not rest:
            raise EOFError("its compressed data has no end")
        yield rest


def _seek_content(file: BinaryIO, info: zipfile.ZipInfo) -> None:
    """Go to the content, after a local header that must agree with the directory, since readers may use either."""
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


class Member(Protocol):
    """A file of a wheel."""

    @property
    def size(self) -> int:
        """The unpacked size."""

    @property
    def mode(self) -> int:
        """The permission bits."""

    def read(self) -> bytes:
        """Return the content."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces, to use little memory."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """A member in memory."""

    content: bytes
    mode: int = _FILE_MODE
    packed: Packed | None = field(default=None, compare=False, repr=False)
    """The content as an archive has it, if that is known: another archive can have it without compressing it again."""

    @classmethod
    def of(cls, member: "Member") -> "Bytes":
        """Return a member, with its content as its archive has it, or compressed.

        Raises:
            WheelError: it is damaged.
        """
        if isinstance(member, Bytes) and member.packed is not None:
            return member
        content = member.read()
        packed = member.packed(content) if isinstance(member, Zipped) else Packed.of(content)
        return cls(content, member.mode, packed)

    @property
    def size(self) -> int:
        """The size of the content."""
        return len(self.content)

    def read(self) -> bytes:
        """Return the content."""
        return self.content

    def chunks(self) -> Iterator[bytes]:
        """Yield the content."""
        yield self.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel file whose directory was read and is safe; members are read on demand."""

    path: Path
    name: str
    """The normalised distribution name, such as `rmsnorm-stable`."""
    version: Version
    tags: frozenset[Tag]
    members: Mapping[str, Member]

    @classmethod
    def read(cls, path: Path) -> "Wheel":
        """Read the directory of a wheel.

        Raises:
            WheelError: it is not a wheel, or a member has an unsafe name, is a link, appears twice or unpacks to
                far more than its size.
        """
        why = why_not_a_name(path.name)
        if why is not None:
            raise WheelError(f"{quoted(path.name)} is not named like a wheel: {why}")
        try:
            name, version, _build, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            wrong = f"is not named like a wheel: {error}" if path.exists() else "does not exist"
            raise WheelError(f"'{path}' {wrong}") from error
        try:
            if not path.is_file():
                raise WheelError(f"'{path}' is not a file", help="name a wheel")
            with zipfile.ZipFile(path) as archive:
                infos = archive.infolist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise WheelError(f"'{path}' is not a readable wheel: {error}") from error
        return cls(path=path, name=name, version=version, tags=tags, members=dict(_members(path, infos)))

    @contextlib.contextmanager
    def held(self) -> Iterator["Wheel"]:
        """Yield this wheel with its file held open, so that reading many members opens it only once.

        Raises:
            WheelError: it cannot be opened.
        """
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise WheelError(f"'{self.path}' is not a readable wheel: {error}") from error
        with file:
            yield replace(
                self,
                members={
                    name: replace(member, opened=file) if isinstance(member, Zipped) else member
                    for name, member in self.members.items()
                },
            )

    @property
    def label(self) -> str | None:
        """The local version label, such as `torch213.cxx11.cpu`."""
        return self.version.local

    @property
    def dist_info(self) -> str:
        """The name of the `.dist-info` directory."""
        distribution, version = self.path.name.split("-")[:2]
        return f"{distribution}-{version}.dist-info"


def _members(path: Path, infos: list[zipfile.ZipInfo]) -> Iterator[tuple[str, Member]]:
    _check_size(path, infos)
    seen: dict[str, tuple[str, str]] = {}
    for info in infos:
        if info.filename.endswith("/"):  # `is_dir` fails for an empty name
            continue
        check_name(info.filename, archive=path)
        _check_same(path, info.filename, seen)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise WheelError(f"'{path}': '{info.filename}' is not a plain file")
        unreadable = None
        if info.flag_bits & _ENCRYPTED:
            unreadable = "is encrypted"
        elif info.compress_type not in _METHODS:
            unreadable = f"is compressed by method {info.compress_type}, and wheels are by deflate or not at all"
        if unreadable is not None:
            raise WheelError(f"'{path}': '{info.filename}' {unreadable}", help="pack it again as wheels are packed")
        yield info.filename, Zipped(path, info)


def _check_size(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    """Refuse a wheel that unpacks to far more than its size, or has overlapping members."""
    size = path.stat().st_size
    unpacked, allowed = sum(info.file_size for info in infos), max(MAX_UNPACKED, MAX_RATIO * size)
    if len(infos) > MAX_MEMBERS:
        raise WheelError(f"'{path}' has {len(infos)} members, more than the {MAX_MEMBERS} that are read")
    if unpacked > allowed:
        raise WheelError(f"'{path}' has {size} bytes and unpacks to {unpacked}, more than the {allowed} that are read")
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise WheelError(f"'{path}': '{info.filename}' lies over another member", help="pack it again")
        end = info.header_offset + _LOCAL.size + info.compress_size


def _check_same(path: Path, name: str, seen: dict[str, tuple[str, str]]) -> None:
    """Refuse names that are equal on a case-insensitive file system."""
    if seen.get(_folded(name)) == (name, "file"):
        raise WheelError(f"'{path}' has '{name}' twice")
    part, kind = name, "file"
    while part:
        known, other = seen.setdefault(_folded(part), (part, kind))
        if known != part:
            raise WheelError(
                f"'{path}' has '{part}' and '{known}', which are one file on macOS and on Windows",
                help="rename one of the two",
            )
        if other != kind:
            raise WheelError(f"'{path}': '{part}' is a file and a directory")
        part, kind = part.rpartition("/")[0], "folder"
        if seen.get(_folded(part)) == (part, kind):
            break


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_name(name: str, *, archive: Path) -> None:
    """Refuse a member's name that leaves the unpacking directory, or that cannot be shown unchanged.

    Raises:
        WheelError: the name is absolute or too long, or has `..`, a backslash, a drive or an invisible character.
    """
    why = why_not_a_name(name)
    if why is not None:
        raise WheelError(f"'{archive}' has a member with an unsafe name: {quoted(name)}: {why}")
    if not _ELSEWHERE.isdisjoint(name.split("/")) or "\\" in name or ":" in name:
        raise WheelError(f"'{archive}' has a member with an unsafe name: {name!r}")


def unpack(wheel: Wheel, root: Path) -> None:
    """Write every member under `root`, which must exist."""
    for name, member in wheel.members.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.writelines(member.chunks())
        target.chmod(_mode(member))


def _mode(member: Member) -> int:
    return _LIBRARY_MODE if member.mode & stat.S_IXUSR else _FILE_MODE


def pack(members: Mapping[str, Bytes], *, dist_info: str, epoch: int | None = EPOCH) -> bytes:
    """Return a wheel's bytes: sorted members, RECORD last, fixed times, modes and compression.

    `epoch` is in seconds since 1970, in UTC, rounded down to zip's resolution of two seconds; None uses the current
    time and the given order, as other tools do.
    """
    import time  # noqa: PLC0415  only packing needs it

    # The recommended order: dist-info at the end, and RECORD last.
    ordered = sorted(members) if epoch is not None else list(members)
    ordered.sort(key=lambda name: name.startswith(f"{dist_info}/"))
    moment = time.gmtime(time.time() if epoch is None else max(epoch, EPOCH))[:6]
    buffer, record, own = io.BytesIO(), "", f"{dist_info}/RECORD"
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ordered:
            member = members[name]
            packed = member.packed or Packed.of(member.content)
            record += f"{_csv(name)},{record_hash(packed.digest)},{member.size}\n"
            packed.append_to(archive, buffer, zipfile.ZipInfo(name, moment), mode=_mode(member))
        last = Bytes(f"{record}{_csv(own)},,\n".encode())
        Packed.of(last.content).append_to(archive, buffer, zipfile.ZipInfo(own, moment), mode=_mode(last))
    return buffer.getvalue()


def _csv(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n') else name
