"""Unpack device code piece by piece: Zstandard, zlib, and the blocks of LZ4 that nvcc writes."""

import contextlib
import importlib
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from builder.errors import BuilderError, ToolError

_STEP = 1 << 14
_WIDEST = 27
"""Zstandard asks for a window before it unpacks a byte; compilers use up to 2 ** 27 bytes."""


class UnpackError(BuilderError):
    """A content that is not what its compression writes."""


def zlib_pieces(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what zlib packed, in pieces of up to 16 KiB; of what is packed no more is taken than that needs.

    Raises:
        UnpackError: it is damaged.
    """
    inflate = zlib.decompressobj()
    while not inflate.eof:
        block = inflate.unconsumed_tail or next(packed, b"")
        try:
            piece = inflate.decompress(block, _STEP)
        except zlib.error as error:
            raise UnpackError(str(error)) from error
        if not block and not piece:
            return
        yield piece


def zstandard_pieces(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what Zstandard packed, in pieces of up to 16 KiB; of what is packed no more is taken than that needs.

    Raises:
        ToolError: this Python does not unpack it.
        UnpackError: it is damaged.
    """
    library = zstandard()
    inflate = library.ZstdDecompressor(options={library.DecompressionParameter.window_log_max: _WIDEST})
    while not inflate.eof:
        block = next(packed, b"") if inflate.needs_input else b""
        try:
            piece = inflate.decompress(block, _STEP)
        except library.ZstdError as error:
            raise UnpackError(str(error)) from error
        if not block and not piece:
            return
        yield piece


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


def first(pieces: Iterator[bytes], size: int) -> bytes:
    """Return the first `size` bytes of an unpacked content, or as many as there are.

    Raises:
        UnpackError: it is damaged.
    """
    found = bytearray()
    while len(found) < size and (piece := next(pieces, None)) is not None:
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
