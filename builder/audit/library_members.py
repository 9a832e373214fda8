"""Find the libraries in a wheel, and read one into memory."""

import mmap
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from builder.binary.extension import binary_format
from builder.wheel.archive import Member, Wheel

HEAD = 4
"""Bytes at the start of a file that identify its format."""
_IN_MEMORY = 256 << 20
_LIBRARY_NAME = re.compile(r"\.(so(\.[0-9]+)*|pyd|dylib|dll)$")


def named_as_library(name: str) -> bool:
    """Whether a member's name is that of a library."""
    return _LIBRARY_NAME.search(name) is not None


def is_library(name: str, head: bytes) -> bool:
    """Whether a member is a library; the letters MZ at its start are not enough."""
    return named_as_library(name) or binary_format(head) not in (None, "PE")


@contextmanager
def memory(size: int) -> Iterator[mmap.mmap]:
    """Return a buffer for a library: in memory, or for a large one in a file, so that the system can page it out."""
    if size <= _IN_MEMORY:
        with mmap.mmap(-1, size) as data:
            yield data
        return
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as data:
            yield data


@contextmanager
def unpacked(member: Member) -> Iterator[mmap.mmap]:
    """Return a buffer with the content of a library that is not empty.

    Raises:
        WheelError: it cannot be unpacked.
    """
    with memory(member.size) as data:
        for piece in member.chunks():
            data.write(piece)
        yield data


def libraries(wheel: Wheel) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each library of a wheel.

    Raises:
        WheelError: one cannot be unpacked.
    """
    for name, member in wheel.members.items():
        content = member.read()
        if content and is_library(name, content[:HEAD]):
            yield name, content
