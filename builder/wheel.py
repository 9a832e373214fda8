"""A wheel: its name, its members, and how it is packed so that the same content gives the same bytes."""

import base64
import hashlib
import io
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from builder.errors import BuilderError

EPOCH = 315532800
"""1980-01-01T00:00:00Z, the first instant that a zip archive can name."""
LATEST = 4354819198
"""2107-12-31T23:59:58Z, the last one."""
MAX_MEMBERS = 100_000
MAX_SIZE = 16 << 30
MAX_RATIO = 1100
"""deflate cannot expand more than 1032 times; what claims to is a bomb or damaged."""
_FILE_MODE = 0o644
_LIBRARY_MODE = 0o755


class WheelError(BuilderError):
    """A file that is not a wheel, or one that cannot be trusted."""


class Member(Protocol):
    """A file of a wheel."""

    @property
    def size(self) -> int:
        """Bytes when unpacked."""

    @property
    def mode(self) -> int:
        """Permission bits."""

    def read(self) -> bytes:
        """Return the content."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """A member that is in memory."""

    content: bytes
    mode: int = _FILE_MODE

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.content)

    def read(self) -> bytes:
        """Return the content."""
        return self.content


@dataclass(frozen=True, slots=True)
class _Zipped:
    archive: Path
    info: zipfile.ZipInfo

    @property
    def size(self) -> int:
        return self.info.file_size

    @property
    def mode(self) -> int:
        return stat.S_IMODE(self.info.external_attr >> 16)

    def read(self) -> bytes:
        try:
            with zipfile.ZipFile(self.archive) as archive:
                return archive.read(self.info)
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise WheelError(f"'{self.archive}' is damaged at '{self.info.filename}': {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel file, its directory read and found safe; members are read when asked for."""

    path: Path
    name: str
    """Normalised distribution name, such as `rmsnorm-stable`."""
    version: Version
    tags: frozenset[Tag]
    members: Mapping[str, Member]

    @classmethod
    def read(cls, path: Path) -> "Wheel":
        """Read the directory of a wheel.

        Raises:
            WheelError: it is not a wheel, or a member has an unsafe name, is a link, is double or is a bomb.
        """
        try:
            name, version, _build, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise WheelError(f"'{path}' is not named like a wheel: {error}") from error
        try:
            with zipfile.ZipFile(path) as archive:
                infos = archive.infolist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise WheelError(f"'{path}' is not a readable wheel: {error}") from error
        return cls(path=path, name=name, version=version, tags=tags, members=dict(_members(path, infos)))

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
    if len(infos) > MAX_MEMBERS or sum(info.file_size for info in infos) > MAX_SIZE:
        raise WheelError(f"'{path}' claims {len(infos)} members that unpack to more than any wheel has")
    seen: set[str] = set()
    for info in infos:
        if info.is_dir():
            continue
        check_name(info.filename, archive=path)
        if info.filename in seen:
            raise WheelError(f"'{path}' has '{info.filename}' twice")
        seen.add(info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise WheelError(f"'{path}': '{info.filename}' is not a plain file")
        if info.file_size > MAX_RATIO * max(info.compress_size, 1):
            raise WheelError(f"'{path}': '{info.filename}' claims to unpack {info.file_size} bytes, more than it can")
        yield info.filename, _Zipped(path, info)


def check_name(name: str, *, archive: Path) -> None:
    """Refuse a member's name that leaves the directory it is unpacked in.

    Raises:
        WheelError: the name is absolute, has `..`, a backslash, a drive or a control character.
    """
    path = PurePosixPath(name)
    unsafe = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or str(path) != name
    if unsafe or any(ord(character) < ord(" ") for character in name):
        raise WheelError(f"'{archive}' has a member with an unsafe name: {name!r}")


def unpack(wheel: Wheel, root: Path) -> None:
    """Write every member under `root`, which must exist."""
    for name, member in wheel.members.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(member.read())
        target.chmod(_LIBRARY_MODE if member.mode & stat.S_IXUSR else _FILE_MODE)


def record_hash(content: bytes) -> str:
    """Return the hash as a RECORD file spells it: `sha256=` and unpadded URL-safe base64."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def pack(members: Mapping[str, Bytes], *, dist_info: str, epoch: int | None = EPOCH) -> bytes:
    """Return a wheel's bytes: sorted members, RECORD last, fixed times, modes and compression.

    `epoch` is in seconds since 1970, in UTC, and is rounded down to the two seconds that zip can name; None is the
    clock's time and the order given, as other tools pack.
    """
    order = sorted if epoch is not None else list
    ordered = order(name for name in members if not name.startswith(f"{dist_info}/"))
    # The recommended order: dist-info at the end of the archive, and RECORD the last of all.
    ordered += order(name for name in members if name.startswith(f"{dist_info}/"))
    record = "".join(f"{_csv(name)},{record_hash(members[name].content)},{members[name].size}\n" for name in ordered)
    record += f"{_csv(f'{dist_info}/RECORD')},,\n"
    everything = [(name, members[name]) for name in ordered]
    everything.append((f"{dist_info}/RECORD", Bytes(record.encode())))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, member in everything:
            archive.writestr(_info(name, mode=member.mode, epoch=epoch), member.content, compresslevel=6)
    return buffer.getvalue()


def _csv(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n') else name


def _info(name: str, *, mode: int, epoch: int | None) -> zipfile.ZipInfo:
    import time  # noqa: PLC0415  only packing needs it

    info = zipfile.ZipInfo(name, date_time=time.gmtime(time.time() if epoch is None else max(epoch, EPOCH))[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # Unix, on every system
    executable = bool(mode & stat.S_IXUSR)
    info.external_attr = (stat.S_IFREG | (_LIBRARY_MODE if executable else _FILE_MODE)) << 16
    return info


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file aside, flush it to the disk and rename it: it is there whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
