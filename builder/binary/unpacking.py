"""Unpack device code piece by piece: Zstandard, zlib, and the blocks of LZ4 that nvcc writes."""

import contextlib
import importlib
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from builder.errors import BuilderError, ToolError

_STEP = 1 << 14
_WIDEST = 27
"""Zstandard asks for a window before it unpacks a byte; compilers use up to 2 ** 27 bytes."""


class UnpackError(BuilderError):
    """A content that is not what its compression writes."""


class Unpacker(Protocol):
    """Unpacks one content."""

    @property
    def eof(self) -> bool:
        """Whether all of it is unpacked."""

    def more(self, feed: Callable[[], bytes]) -> bytes:
        """Return up to 16 KiB more; `feed` gives what is packed, and in the end nothing.

        Raises:
            UnpackError: it is damaged.
        """


class Zlib:
    """A content that zlib packed."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj()

    @property
    def eof(self) -> bool:
        """Whether all of it is unpacked."""
        return self._inflate.eof

    def more(self, feed: Callable[[], bytes]) -> bytes:
        """Return up to 16 KiB more.

        Raises:
            UnpackError: it is damaged.
        """
        try:
            return self._inflate.decompress(self._inflate.unconsumed_tail or feed(), _STEP)
        except zlib.error as error:
            raise UnpackError(str(error)) from error


class Zstandard:
    """A content that Zstandard packed.

    Raises:
        ToolError: this Python does not unpack it.
    """

    def __init__(self) -> None:
        library = zstandard()
        widest = {library.DecompressionParameter.window_log_max: _WIDEST}
        self._error, self._inflate = library.ZstdError, library.ZstdDecompressor(options=widest)

    @property
    def eof(self) -> bool:
        """Whether all of it is unpacked."""
        return bool(self._inflate.eof)

    def more(self, feed: Callable[[], bytes]) -> bytes:
        """Return up to 16 KiB more.

        Raises:
            UnpackError: it is damaged.
        """
        try:
            return bytes(self._inflate.decompress(feed() if self._inflate.needs_input else b"", _STEP))
        except self._error as error:
            raise UnpackError(str(error)) from error


@cache
def zstandard() -> Any:
    """Return the library that reads Zstandard.

    Raises:
        ToolError: there is none.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ToolError(
        "device code is compressed with Zstandard, which this Python does not read",
        help="python -m pip install backports.zstd, or take Python 3.14",
    )


def first(packed: bytes, size: int, unpacker: Unpacker) -> bytes:
    """Return the first `size` bytes of a packed content, or as many as there are.

    Raises:
        UnpackError: it is damaged.
    """
    left = [packed]
    found = bytearray()
    while len(found) < size and not unpacker.eof:
        fed = len(left)
        piece = unpacker.more(lambda: left.pop() if left else b"")
        if not piece and fed == len(left):
            break
        found += piece
    return bytes(found[:size])


def lz4(packed: bytes, size: int) -> bytes:
    """Return the first `size` bytes of a block of LZ4, or as many as there are.

    Raises:
        UnpackError: it points to what is not there.
    """
    found, at = bytearray(), 0
    while at < len(packed) and len(found) < size:
        token = packed[at]
        literals, at = _length(packed, at + 1, token >> 4)
        found += packed[at : at + literals]
        at += literals
        if at + 2 > len(packed) or len(found) >= size:
            break  # the last sequence has no match; what is behind it is padding
        back = int.from_bytes(packed[at : at + 2], "little")
        match, at = _length(packed, at + 2, token & 15)
        if not 0 < back <= len(found):
            raise UnpackError("a block of LZ4 points before its beginning")
        match = min(match + 4, size - len(found))
        source = bytes(found[-back:])
        found += (source * (match // back + 1))[: max(match, 0)]
    return bytes(found[:size])


def _length(packed: bytes, at: int, length: int) -> tuple[int, int]:
    """Return a length that goes on in further bytes when it is 15, and where it ends."""
    if length == 15:  # noqa: PLR2004  the most that half a byte holds
        while at < len(packed) and packed[at] == 255:  # noqa: PLR2004  the most that a byte holds
            length, at = length + 255, at + 1
        length, at = length + (packed[at] if at < len(packed) else 0), at + 1
    return length, at
