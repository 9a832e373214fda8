"""Members of a wheel that lies on a server, of which only the parts that are read are fetched."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast
from zipfile import BadZipFile, ZipFile

from builder.environment import download
from builder.errors import ToolError

_ATTEMPTS = 3
_CHUNK = 4 << 20
"""Bytes that are asked for at once: small members lie side by side."""


class RemoteError(ToolError):
    """A published wheel cannot be read where it lies."""


def open_wheel(file: str, place: str, *, env: Mapping[str, str]) -> ZipFile:
    """Open a wheel at an address, or at a path.

    Raises:
        RemoteError: it is not there, its server is slow or away, or it is no archive.
    """
    try:
        if "://" not in place:
            return ZipFile(Path(place))
        return ZipFile(cast("BinaryIO", io.BufferedReader(RemoteFile(file, place, env=env), _CHUNK)))
    except (BadZipFile, OSError) as error:
        raise RemoteError(f"cannot read '{file}': {error}", help="try again; look at the file on its index") from error


class RemoteFile(io.RawIOBase):
    """A file that is read by ranges of its bytes."""

    def __init__(self, file: str, address: str, *, env: Mapping[str, str]) -> None:
        self._file = file
        self._address = address
        self._client = download.opener(env)
        self._position = 0
        self._size = 0
        self._size = self._ask(0, 0)[1]

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that any part of it can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fetch the bytes at the position.

        Raises:
            RemoteError: the server does not give them.
        """
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        content, _ = self._ask(self._position, end - 1)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _ask(self, first: int, last: int) -> tuple[bytes, int]:
        """Return bytes of the file, and the size of the whole; an answer that fails is asked for again."""
        reason = ""
        for _ in range(_ATTEMPTS):
            try:
                found = download.part_of(self._address, first, last, client=self._client)
            except OSError as error:  # also urllib's own and those of TLS
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
