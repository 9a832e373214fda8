"""The version of torch whose headers a library was compiled with, read from its machine code."""

import re
from collections.abc import Iterator

from builder.binary.elf_symbols import Data
from builder.binary.extension import Extension, ExtensionError
from builder.config.values import Version

# `TORCH_ABI_VERSION`, major << 56 | minor << 48 | patch << 40, is an argument of torch_library_impl and
# torch_call_dispatcher, so it stands in the code as a constant. The target version does not.
_X86_64 = re.compile(rb"[\x48\x49][\xb8-\xbf]\x00{5}[\x00-\x1f]([\x00-\x3f])([\x02-\x03])", re.DOTALL)
# `movz xN, #0x20a, lsl #48`: five bits of N, sixteen of the constant, and the operation.
_AARCH64 = re.compile(rb"[\x40-\x67]\xe0\xd2")
_WORD = 4
_MOST_PLACES = 1 << 20
"""Places in the code that look like such a constant; a real library has some dozens."""


def header_versions(extension: Extension, data: Data) -> frozenset[Version]:
    """Return the versions that the code of `extension` loads as whole 64-bit constants.

    Raises:
        ExtensionError: there are so many places to look at that it is no code.
    """
    found: set[tuple[int, int]] = set()
    for seen, version in enumerate(_places(extension, data)):
        if seen > _MOST_PLACES:
            raise ExtensionError(
                f"'{extension.name}' has more than {_MOST_PLACES} constants that look like a version of torch",
                help="build it again",
            )
        found.add(version)
    return frozenset(Version(f"{major}.{minor}") for major, minor in found)


def _places(extension: Extension, data: Data) -> Iterator[tuple[int, int]]:
    for offset, size in extension.code:
        if extension.machine == "x86_64":
            yield from _x86_64(data, offset, offset + size)
        elif extension.machine == "aarch64":
            yield from _aarch64(data, offset, offset + size)


def _x86_64(data: Data, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _X86_64.finditer(data, start, end):
        yield match[2][0], match[1][0]


def _aarch64(data: Data, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _AARCH64.finditer(data, start + 1, end):
        at = match.start() - 1
        if (at - start) % _WORD == 0:
            constant = int.from_bytes(data[at : at + _WORD], "little") >> 5 & 0xFFFF
            yield constant >> 8, constant & 0xFF
