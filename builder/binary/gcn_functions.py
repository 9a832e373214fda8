"""The functions of a code object for an AMD GPU, as its note describes them: a document in MessagePack.

LLVM has the keys in its "User Guide for AMDGPU Backend", as code object V3 and later.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from builder.binary.device_image import UnpackingBudget
from builder.binary.elf_file import ElfError, ElfFile
from builder.binary.elf_symbols import symbols
from builder.binary.functions import Function

_OWNER, _NOTE = b"AMDGPU", 32
_DEEPEST = 8
_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    **{0xCC + power: struct.Struct(f">{letter}") for power, letter in enumerate("BHIQ")},
    **{0xD0 + power: struct.Struct(f">{letter}") for power, letter in enumerate("bhiq")},
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
}
_LENGTHS = {0xD9: ("text", 1), 0xDA: ("text", 2), 0xDB: ("text", 4), 0xDC: ("list", 2), 0xDD: ("list", 4),
            0xDE: ("map", 2), 0xDF: ("map", 4)}  # fmt: skip


class _DamagedNoteError(ValueError):
    """A note that is no document in MessagePack, or is not about functions."""


def functions(content: bytes, budget: UnpackingBudget, *, at: int) -> Iterator[Function]:
    """Yield the functions of a code object that is at a byte of a library.

    Raises:
        DeviceCodeError: it is damaged, or has more of them than are read.
    """
    try:
        file = ElfFile(content)
        sizes = {symbol.name: symbol.size for symbol in symbols(file, file.strings)}
        for owner, kind, start, size in file.notes():
            if (owner, kind) == (_OWNER, _NOTE):
                for kernel in _kernels(_Document(content[start : start + size], budget).value(_DEEPEST)):
                    budget.spend("functions")
                    yield _function(kernel, sizes)
    except (struct.error, IndexError, ElfError, _DamagedNoteError, ValueError):
        raise budget.damaged("code object", at) from None


def _kernels(document: object) -> list[Mapping[str, Any]]:
    found = document.get("amdhsa.kernels", []) if isinstance(document, dict) else None
    if not isinstance(found, list) or not all(isinstance(kernel, dict) for kernel in found):
        raise _DamagedNoteError
    return found


def _function(kernel: Mapping[str, Any], sizes: Mapping[str, int]) -> Function:
    name = kernel.get(".name")
    if not isinstance(name, str):
        raise _DamagedNoteError

    def number(key: str, default: int | None = None) -> int:
        value = kernel.get(key, default)
        if type(value) is not int or value < 0:
            raise _DamagedNoteError
        return value

    return Function(
        name=name,
        registers=number(".vgpr_count"),
        stack=number(".private_segment_fixed_size"),
        shared=number(".group_segment_fixed_size"),
        constant=number(".kernarg_segment_size"),
        size=sizes.get(name, 0),
        threads=number(".max_flat_workgroup_size"),
        spilled=number(".vgpr_spill_count", 0),
        scalars=number(".sgpr_count"),
        spilled_scalars=number(".sgpr_spill_count", 0),
        wave=number(".wavefront_size"),
    )


class _Document:
    """A document in MessagePack, read from left to right."""

    def __init__(self, content: bytes, budget: UnpackingBudget) -> None:
        self._content, self._budget, self._at = content, budget, 0

    def value(self, depth: int) -> object:
        """Return the next value, with what is in it up to a depth."""
        self._budget.spend("records about functions")
        first = self._content[self._at]
        self._at += 1
        if first < 0x80 or first >= 0xE0:  # noqa: PLR2004  the ranges of the format
            return first - (first >> 7 << 8)
        if first in _FIXED:
            return _FIXED[first]
        if first in _NUMBERS:
            layout = _NUMBERS[first]
            return layout.unpack(self._take(layout.size))[0]
        kind, length = self._length(first)
        if kind == "text":
            return self._take(length).decode()
        if depth == 0:
            raise _DamagedNoteError
        if kind == "list":
            return [self.value(depth - 1) for _ in range(length)]
        return {str(self.value(0)): self.value(depth - 1) for _ in range(length)}

    def _length(self, first: int) -> tuple[str, int]:
        if first < 0x90:  # noqa: PLR2004
            return "map", first & 0xF
        if first < 0xA0:  # noqa: PLR2004
            return "list", first & 0xF
        if first < 0xC0:  # noqa: PLR2004
            return "text", first & 0x1F
        if first not in _LENGTHS:
            raise _DamagedNoteError
        kind, size = _LENGTHS[first]
        return kind, int.from_bytes(self._take(size), "big")

    def _take(self, size: int) -> bytes:
        found = self._content[self._at : self._at + size]
        if len(found) < size:
            raise _DamagedNoteError
        self._at += size
        return found
