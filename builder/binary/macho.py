"""Read the load commands and the symbol table of a 64-bit Mach-O library."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.binary.elf_file import Data
from builder.binary.elf_symbols import Symbol

_HEADER = struct.Struct("<IiiIIIII")
_COMMAND = struct.Struct("<II")
_SEGMENT = struct.Struct("<II16sQQQQ")
_SYMTAB = struct.Struct("<IIIIII")
_SYMBOL = struct.Struct("<IBBHQ")
_VERSION = struct.Struct("<III")
_BUILD_VERSION = struct.Struct("<IIII")

_MAGIC = 0xFEEDFACF
_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_DYLIB, _BUNDLE = 6, 8
_LC_SYMTAB, _LC_ID_DYLIB, _LC_SEGMENT, _LC_UUID = 0x2, 0xD, 0x19, 0x1B
_LC_LOADS = frozenset((0xC, 0x20, 0x80000018, 0x8000001F, 0x80000023))
_LC_RPATH, _LC_VERSION_MIN, _LC_BUILD_VERSION = 0x8000001C, 0x24, 0x32
_N_STAB, _N_TYPE, _N_EXT = 0xE0, 0x0E, 0x01
_WEAK = 0x40 | 0x80
_MOST_COMMANDS = 1 << 14
_MOST_SYMBOLS = 1 << 19
_MOST_NAMES = 64 << 20
_LONGEST_NAME = 1 << 16
_LONGEST_PATH = 1 << 14


class MachoError(ValueError):
    """The bytes are not a complete 64-bit Mach-O library; the message says why."""


@dataclass(frozen=True, slots=True)
class Macho:
    """A view of a Mach-O library's bytes; every method raises MachoError for a damaged part.

    Raises:
        MachoError: the file is damaged there.
    """

    data: Data
    machine: str = field(init=False)
    commands: tuple[tuple[int, int, int], ...] = field(init=False)
    """(command, offset, size) of each load command."""

    def __post_init__(self) -> None:
        magic, cpu, _, kind, count, size, _, _ = self._unpack(_HEADER, 0)
        if magic != _MAGIC:
            raise MachoError("it is a 32-bit, big-endian or universal Mach-O file")
        if kind not in (_DYLIB, _BUNDLE):
            raise MachoError(f"it is a Mach-O file of type {kind}, not a library")
        if count > _MOST_COMMANDS or _HEADER.size + size > len(self.data):
            raise MachoError("its load commands are cut off")
        object.__setattr__(self, "machine", _MACHINES.get(cpu, f"machine {cpu}"))
        object.__setattr__(self, "commands", tuple(self._read_commands(count, _HEADER.size + size)))

    def _read_commands(self, count: int, end: int) -> Iterator[tuple[int, int, int]]:
        at = _HEADER.size
        for _ in range(count):
            command, size = self._unpack(_COMMAND, at)
            if size < _COMMAND.size or at + size > end:
                raise MachoError(f"it is damaged: the load command at byte {at} has {size} bytes")
            if command == _LC_SEGMENT:
                _, _, _, _, _, offset, length = self._unpack(_SEGMENT, at)
                if offset + length > len(self.data):
                    raise MachoError(
                        f"it is cut off: a segment ends at {offset + length}, the file at {len(self.data)}"
                    )
            yield command, at, size
            at += size

    def _unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        try:
            return layout.unpack_from(self.data, offset)
        except (struct.error, OverflowError) as error:
            raise MachoError(f"it is cut off or damaged: nothing to read at byte {offset}") from error

    def _texts(self, *wanted: int) -> tuple[str, ...]:
        found: list[str] = []
        for command, at, size in self.commands:
            if command in wanted:
                start = self._unpack(struct.Struct("<I"), at + 8)[0]
                content = bytes(self.data[at + start : at + min(size, start + _LONGEST_PATH)])
                if start >= size or (b"\0" not in content and len(content) == _LONGEST_PATH):
                    raise MachoError(
                        f"it is damaged: a name lies outside the load command at byte {at}, or is too long"
                    )
                found.append(content.split(b"\0", 1)[0].decode("utf-8", "backslashreplace"))
        return tuple(found)

    @property
    def needed(self) -> tuple[str, ...]:
        """The install names of the libraries that it loads."""
        return self._texts(*_LC_LOADS)

    @property
    def name(self) -> str | None:
        """The install name of the library itself."""
        return next(iter(self._texts(_LC_ID_DYLIB)), None)

    @property
    def rpath(self) -> tuple[str, ...]:
        """The folders that `@rpath` stands for."""
        return self._texts(_LC_RPATH)

    @property
    def uuid(self) -> str | None:
        """The UUID, in hex."""
        at = next((at for command, at, size in self.commands if command == _LC_UUID and size >= 24), None)  # noqa: PLR2004
        return None if at is None else bytes(self.data[at + 8 : at + 24]).hex()

    @property
    def minimum(self) -> tuple[int, int] | None:
        """The oldest macOS that it claims to run on."""
        for command, at, _ in self.commands:
            if command == _LC_BUILD_VERSION:
                version = self._unpack(_BUILD_VERSION, at)[3]
            elif command == _LC_VERSION_MIN:
                version = self._unpack(_VERSION, at)[2]
            else:
                continue
            return version >> 16, version >> 8 & 0xFF
        return None

    def symbols(self) -> tuple[Symbol, ...]:
        """Return the symbols that take part in linking, without their leading underscore."""
        at = next((at for command, at, _ in self.commands if command == _LC_SYMTAB), None)
        if at is None:
            raise MachoError("it has no symbol table, so what it uses cannot be seen")
        _, _, offset, count, names, size = self._unpack(_SYMTAB, at)
        if offset + count * _SYMBOL.size > len(self.data) or names + size > len(self.data):
            raise MachoError("it is cut off or damaged: its symbol table is not in the file")
        if count > _MOST_SYMBOLS or size > _MOST_NAMES:
            raise MachoError(f"it claims {count} symbols with {size} bytes of names, more than are read")
        strings = bytes(self.data[names : names + size])
        found: list[Symbol] = []
        length = 0
        for name, kind, _, description, _ in _SYMBOL.iter_unpack(self.data[offset : offset + count * _SYMBOL.size]):
            if not kind & _N_EXT or kind & _N_STAB:
                continue
            end = strings.find(b"\0", name, name + _LONGEST_NAME)
            if end < 0:
                raise MachoError(f"it is damaged: a name lies outside its string table, at {name}")
            text = strings[name:end].decode("utf-8", "backslashreplace").removeprefix("_")
            length += len(text)
            if length > _MOST_NAMES:
                raise MachoError(f"the names of its symbols have more than {_MOST_NAMES} bytes together")
            binding = "weak" if description & _WEAK else "global"
            found.append(Symbol(name=text, defined=bool(kind & _N_TYPE), binding=binding))
        return tuple(found)
