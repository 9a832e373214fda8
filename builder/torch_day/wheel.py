"""Read facts from a wheel of torch; from a server, only the needed parts are fetched."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import BinaryIO, cast
from zipfile import BadZipFile, ZipFile

from builder.binary.extension import Extension, ExtensionError
from builder.environment import download
from builder.errors import ToolError

SHIM_PREFIXES = ("aoti_torch_", "torch_")
"""The prefixes of the C functions of the stable ABI."""
_VERSION = re.compile(r"^(cuda|hip|xpu)\b[^=\n]*=\s*'([^']*)'", re.MULTILINE)
_STANDARD = re.compile(r"\bCXX_STANDARD\s+(\d+)|\bcxx_std_(\d+)")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">]+)[>"]', re.MULTILINE)
_HEADERS = "torch/include/"
_API = "torch/csrc/api/include/"
"""A second include folder, inside the first one."""
_ONLY_IF_ASKED = "torch/torch.h"
"""It includes Python's headers only if a macro is defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFacts:
    """The facts in one wheel."""

    file: str
    toolkits: Mapping[str, str] = field(default_factory=dict)
    """`cuda`, `hip` or `xpu` in `torch.version`, with the value."""
    requires: tuple[str, ...] = ()
    standard: int | None = None
    python_headers: tuple[str, ...] = ()
    shim: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Library → the C functions of the stable ABI that it defines."""


def versions(archive: ZipFile, file: str) -> WheelFacts:
    """Read the few facts that distinguish builds of torch.

    Raises:
        ToolError: the archive is not a wheel of torch.
    """
    text = _text(archive, file, "torch/version.py")
    metadata = next((name for name in archive.namelist() if name.endswith(".dist-info/METADATA")), "METADATA")
    requires = message_from_bytes(_member(archive, file, metadata)).get_all("Requires-Dist", [])
    return WheelFacts(file=file, toolkits=dict(_VERSION.findall(text)), requires=tuple(map(str, requires)))


def everything(archive: ZipFile, file: str, libraries: tuple[str, ...]) -> WheelFacts:
    """Read all facts; the libraries alone have a few hundred megabytes.

    Raises:
        ToolError: the archive is not a wheel of torch.
    """
    few = versions(archive, file)
    config = _text(archive, file, "torch/share/cmake/Torch/TorchConfig.cmake")
    standards = {int(first or second) for first, second in _STANDARD.findall(config)}
    return replace(
        few,
        standard=max(standards, default=None),
        python_headers=with_python(dict(_headers(archive, file))),
        shim={library: _shim(archive, file, library) for library in libraries},
    )


def with_python(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the torch headers that include Python's, directly or through others; `headers` has their texts."""
    includes = {path: set(_included(path, text)) for path, text in headers.items()}
    found: set[str] = set()
    more = {"Python.h"}
    while more:
        found |= more
        more = {path for path, names in includes.items() if path not in found and not names.isdisjoint(found)}
    return tuple(sorted(path for path in found if path.startswith("torch/") and path != _ONLY_IF_ASKED))


def _included(path: str, text: str) -> Iterator[str]:
    """Yield the headers that a header includes, from an include folder or its own folder."""
    for name in _INCLUDE.findall(text):
        yield from (name, normpath(join(dirname(path), name)))


def _headers(archive: ZipFile, file: str) -> Iterator[tuple[str, str]]:
    members = (info for info in archive.infolist() if info.filename.startswith(_HEADERS))
    for info in sorted(members, key=lambda info: info.header_offset):  # in file order: neighbours come in one request
        yield info.filename.removeprefix(_HEADERS).removeprefix(_API), _text(archive, file, info.filename)


def _shim(archive: ZipFile, file: str, library: str) -> tuple[str, ...]:
    name = f"{library}.so"
    try:
        extension = Extension.read(name, _member(archive, file, f"torch/lib/{name}"))
    except ExtensionError as error:
        raise ToolError(f"'{file}' has a '{name}' that cannot be read: {error.message}") from error
    return tuple(sorted({each.name for each in extension.defined if each.name.startswith(SHIM_PREFIXES)}))


def _text(archive: ZipFile, file: str, name: str) -> str:
    return _member(archive, file, name).decode(errors="replace")


def _member(archive: ZipFile, file: str, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError as error:
        raise ToolError(
            f"'{file}' has no '{name}'", help="is it a wheel of torch? look at what changed in it"
        ) from error
    except (BadZipFile, OSError, NotImplementedError) as error:
        raise ToolError(f"cannot read '{name}' of '{file}': {error}", help="try again") from error


_ATTEMPTS = 3
_CHUNK = 4 << 20
"""Bytes per request: small members are next to each other."""


class RemoteError(ToolError):
    """A published wheel cannot be read from its server."""


def open_wheel(file: str, place: str, *, env: Mapping[str, str]) -> ZipFile:
    """Open a wheel at an address, or at a path.

    Raises:
        RemoteError: it is missing, its server is slow or does not answer, or it is not an archive.
    """
    try:
        if "://" not in place:
            return ZipFile(Path(place))
        return ZipFile(cast("BinaryIO", io.BufferedReader(RemoteFile(file, place, env=env), _CHUNK)))
    except (BadZipFile, OSError) as error:
        raise RemoteError(f"cannot read '{file}': {error}", help="try again; look at the file on its index") from error


class RemoteFile(io.RawIOBase):
    """A file that is read in ranges of bytes."""

    def __init__(self, file: str, address: str, *, env: Mapping[str, str]) -> None:
        self._file = file
        self._address = address
        self._client = download.opener(env)
        self._position = 0
        self._size = 0
        self._size = self._ask(0, 0)[1]

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: any position can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fetch the bytes at the position.

        Raises:
            RemoteError: the server does not send them.
        """
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        content, _ = self._ask(self._position, end - 1)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _ask(self, first: int, last: int) -> tuple[bytes, int]:
        """Return a range of the file's bytes, and the file's size; try again after a failure."""
        reason = ""
        for _ in range(_ATTEMPTS):
            try:
                found = download.part_of(self._address, first, last, client=self._client)
            except OSError as error:  # includes the errors of urllib and TLS
                reason = str(getattr(error, "reason", error)) or type(error).__name__
                continue
            if found is None:
                raise RemoteError(
                    f"the server of '{self._file}' does not give parts of files",
                    help="name an index in PIP_INDEX_URL whose server does, or a folder with the wheel in "
                    "PIP_FIND_LINKS",
                )
            if len(found[0]) == last - first + 1:
                return found
            reason = "the answer ended early"
        raise RemoteError(f"cannot fetch '{self._file}': {reason}", help="the server is slow or away: try again later")
