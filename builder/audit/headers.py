"""The version of torch whose headers a library was compiled with, as its machine code tells torch."""

import re
import struct

from builder.config.values import Version
from builder.elf import Data
from builder.extension import Extension

# `TORCH_ABI_VERSION`, major << 56 | minor << 48 | patch << 40, is an argument of torch_library_impl and
# torch_call_dispatcher, so it stands in the code as a constant. The target version does not.
_X86_64 = re.compile(rb"[\x48\x49][\xb8-\xbf]\x00{5}[\x00-\x1f]([\x00-\x3f])([\x02-\x03])", re.DOTALL)
_MOVZ_LSL_48, _MOVZ_MASK = 0xD2E00000, 0xFFE00000
_VERSIONS = frozenset(major << 8 | minor for major in (2, 3) for minor in range(64))


def header_versions(extension: Extension, data: Data) -> frozenset[Version]:
    """Return the versions that the code of `extension` loads as whole 64-bit constants."""
    found: set[Version] = set()
    for offset, size in extension.code:
        if extension.machine == "x86_64":
            found.update(
                Version(f"{match[2][0]}.{match[1][0]}") for match in _X86_64.finditer(data, offset, offset + size)
            )
        elif extension.machine == "aarch64":
            found.update(_aarch64(bytes(data[offset : offset + size - size % 4])))
    return frozenset(found)


def _aarch64(code: bytes) -> frozenset[Version]:
    """Find `movz xN, #0x20a, lsl #48`."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    highs = {word >> 5 & 0xFFFF for word in words if word & _MOVZ_MASK == _MOVZ_LSL_48}
    return frozenset(Version(f"{high >> 8}.{high & 0xFF}") for high in highs if high in _VERSIONS)
