"""Unpack device code piece by piece: Zstandard, zlib, and the LZ4 blocks that nvcc writes."""

import contextlib
import importlib
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from builder.errors import BuilderError, ToolError

_STEP = 1 << 14
_WIDEST = 27
"""The largest window of Zstandard that is accepted; compilers use up to 2 ** 27 bytes."""


class UnpackError(BuilderError):
    """Packed bytes that are damaged."""


def zlib_pieces(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack zlib in pieces of up to 16 KiB, and read only as much input as they need.

    Raises:
        UnpackError: the input is damaged.
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
    """Unpack Zstandard in pieces of up to 16 KiB, and read only as much input as they need.

    Raises:
        ToolError: this Python cannot unpack Zstandard.
        UnpackError: the input is damaged.
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
    """Return the module that reads Zstandard.

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
    """Return the first `size` unpacked bytes, or fewer if there are fewer.

    Raises:
        UnpackError: the input is damaged.
    """
    found = bytearray()
    while len(found) < size and (piece := next(pieces, None)) is not None:
        found += piece
    return bytes(found[:size])


def lz4(packed: bytes, size: int) -> bytes:
    """Unpack the first `size` bytes of an LZ4 block, or fewer if there are fewer.

    Raises:
        UnpackError: it refers to bytes outside of the block.
    """
    found, at = bytearray(), 0
    while at < len(packed) and len(found) < size:
        token = packed[at]
        literals, at = _length(packed, at + 1, token >> 4)
        found += packed[at : at + literals]
        at += literals
        if at + 2 > len(packed) or len(found) >= size:
            break  # the last sequence has no match; the rest is padding
        back = int.from_bytes(packed[at : at + 2], "little")
        match, at = _length(packed, at + 2, token & 15)
        if not 0 < back <= len(found):
            raise UnpackError("a block of LZ4 points before its beginning")
        match = min(match + 4, size - len(found))
        source = bytes(found[-back:])
        found += (source * (match // back + 1))[: max(match, 0)]
    return bytes(found[:size])


def _length(packed: bytes, at: int, length: int) -> tuple[int, int]:
    """Read a length, which continues in further bytes if it is 15; return it and the next offset."""
    if length == 15:  # noqa: PLR2004  the most that half a byte holds
        while at < len(packed) and packed[at] == 255:  # noqa: PLR2004  the most that a byte holds
            length, at = length + 255, at + 1
        length, at = length + (packed[at] if at < len(packed) else 0), at + 1
    return length, at
