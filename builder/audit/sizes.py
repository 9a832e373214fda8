"""Measure a wheel: its files, and in its libraries the device code of each architecture."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from builder import codec
from builder.audit.library_members import HEAD, is_library, unpacked
from builder.binary import device_code
from builder.binary.device_image import Image
from builder.binary.elf_file import Data
from builder.binary.extension import Extension
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wheel.archive import Wheel
from builder.wording import escaped
from builder.wording import size as shown


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSize:
    """The device code of one kind for one architecture."""

    arch: str
    what: str
    """The kind and the architecture, in words."""
    ptx: bool
    size: int
    plain: int
    """The bytes that are not compressed."""
    pieces: int
    """The number of fat binaries or bundles with such code: about one for each source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSize:
    """The size of an unpacked file of a wheel, and of the device code in it, the largest first."""

    name: str
    size: int
    code: tuple[CodeSize, ...] = field(default=(), metadata=codec.spelled(key="device-code"))

    @property
    def rest(self) -> int:
        """The remaining bytes: host code, symbol tables, data."""
        return self.size - sum(each.size for each in self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSizes:
    """The sizes of a wheel and of its files."""

    packed: int
    """The size of the wheel itself."""
    files: tuple[FileSize, ...]
    """The sizes of the files, the largest first."""

    @property
    def unpacked(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)

    @property
    def code(self) -> list[CodeSize]:
        """The device code of all files."""
        return [each for file in self.files for each in file.code]

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes and their sums as JSON values; `codec.decode` reads them again."""
        files = [
            {"name": file.name, "size": file.size, "rest": file.rest, "device-code": codec.encode(file.code)}
            for file in self.files
        ]
        return {"packed": self.packed, "unpacked": self.unpacked, "files": files}

    @property
    def text(self) -> str:
        """Return the sizes as text: libraries with their parts, and all other files together."""
        lines = [f"{shown(self.packed)}, unpacked {shown(self.unpacked)}"]
        for file in self.files:
            if file.code:
                lines.append(f"  {shown(file.size):>9}  {escaped(file.name)}")
                for each in file.code:
                    pieces = f"in {each.pieces} piece{'s' if each.pieces != 1 else ''}"
                    lines.append(self._part(each.size, f"{escaped(each.what)}, {pieces}"))
                lines.append(self._part(file.rest, "all else: code for processors, data"))
        others = [file for file in self.files if not file.code]
        if others:
            lines.append(f"  {shown(sum(file.size for file in others)):>9}  {len(others)} other files")
        return "".join(f"{line}\n" for line in lines)

    def _part(self, size: int, words: str) -> str:
        return f"    {shown(size):>9}  {100 * size / max(self.unpacked, 1):3.0f} %  {words}"


def of(wheel: Wheel) -> WheelSizes:
    """Measure the parts of a wheel; for a library that cannot be read, only its whole size.

    Raises:
        WheelError: a member cannot be unpacked.
    """
    files: list[FileSize] = []
    for name, member in wheel.members.items():
        code: tuple[CodeSize, ...] = ()
        if member.size:
            with unpacked(member) as data:
                code = tuple(of_library(name, data)) if is_library(name, data[:HEAD]) else ()
        files.append(FileSize(name=name, size=member.size, code=code))
    files.sort(key=lambda file: (-file.size, file.name))
    return WheelSizes(packed=wheel.path.stat().st_size, files=tuple(files))


def of_library(name: str, data: Data) -> Iterator[CodeSize]:
    """Yield the device code of a library, the largest first; nothing of one that cannot be read."""
    sizes: Counter[Image] = Counter()
    plain: Counter[Image] = Counter()
    pieces: Counter[Image] = Counter()
    try:
        without = Extension.read(name, data).relocatable_device_code
        for stored in device_code.sizes(name, data, without=without):
            sizes[stored.image] += stored.size
            plain[stored.image] += 0 if stored.compressed else stored.size
            pieces[stored.image] += 1
    except BuilderError:
        return  # the rule `format` reports why
    for image in sorted(sizes, key=lambda image: (-sizes[image], architectures.natural(image.arch), image.kind)):
        yield CodeSize(
            arch=image.arch,
            what=str(image),
            ptx=image.kind == "ptx",
            size=sizes[image],
            plain=plain[image],
            pieces=pieces[image],
        )
