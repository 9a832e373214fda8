"""The sizes of a wheel: of its files, and in its libraries of the device code of each architecture."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from builder.audit.library_members import HEAD, is_library, unpacked
from builder.binary import device_code
from builder.binary.device_image import Image
from builder.binary.elf_symbols import Data
from builder.binary.extension import Extension
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wheel.archive import Member, Wheel
from builder.wording import escaped
from builder.wording import size as shown


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSize:
    """The device code of one kind for one architecture."""

    arch: str
    what: str
    """In words: its kind and its architecture."""
    ptx: bool
    size: int
    plain: int
    """The bytes of it that are not compressed."""
    pieces: int
    """The number of fat binaries or bundles that have some: about one for each source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSize:
    """A file of a wheel, unpacked, and what of it is device code: the largest first."""

    name: str
    size: int
    code: tuple[CodeSize, ...] = ()

    @property
    def rest(self) -> int:
        """The bytes that are left: code of the processor, tables of symbols, data."""
        return self.size - sum(each.size for each in self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSizes:
    """The sizes of a wheel and of its files."""

    packed: int
    """The size of the wheel itself."""
    files: tuple[FileSize, ...]
    """The largest first."""

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        files = [
            {
                "name": file.name,
                "size": file.size,
                "rest": file.rest,
                "device-code": [asdict(each) for each in file.code],
            }
            for file in self.files
        ]
        return {"packed": self.packed, "unpacked": sum(file.size for file in self.files), "files": files}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "WheelSizes":
        """Undo `to_dict`."""
        files = (
            FileSize(name=file["name"], size=file["size"], code=tuple(CodeSize(**each) for each in file["device-code"]))
            for file in fields["files"]
        )
        return cls(packed=fields["packed"], files=tuple(files))

    @property
    def text(self) -> str:
        """The same for people: libraries by what is in them, and all other files as one."""
        whole = sum(file.size for file in self.files)
        lines = [f"{shown(self.packed)}, unpacked {shown(whole)}"]
        libraries = [file for file in self.files if file.code]
        for file in libraries:
            lines.append(f"  {shown(file.size):>9}  {escaped(file.name)}")
            lines += [f"    {shown(each.size):>9}  {_share(each.size, whole)}  {_words(each)}" for each in file.code]
            lines.append(f"    {shown(file.rest):>9}  {_share(file.rest, whole)}  all else: code for processors, data")
        others = [file for file in self.files if not file.code]
        if others:
            lines.append(f"  {shown(sum(file.size for file in others)):>9}  {len(others)} other files")
        return "".join(f"{line}\n" for line in lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):3.0f} %"


def _words(code: CodeSize) -> str:
    return f"{escaped(code.what)}, in {code.pieces} piece{'s' if code.pieces != 1 else ''}"


def of(wheel: Wheel) -> WheelSizes:
    """Return what takes the bytes of a wheel; of a library that cannot be read, its size alone.

    Raises:
        WheelError: a member cannot be unpacked.
    """
    files = (_file(name, member) for name, member in wheel.members.items())
    return WheelSizes(
        packed=wheel.path.stat().st_size, files=tuple(sorted(files, key=lambda file: (-file.size, file.name)))
    )


def _file(name: str, member: Member) -> FileSize:
    if not member.size:
        return FileSize(name=name, size=0)
    with unpacked(member) as data:
        code = tuple(_code(name, data)) if is_library(name, data[:HEAD]) else ()
    return FileSize(name=name, size=member.size, code=code)


def _code(name: str, data: Data) -> Iterator[CodeSize]:
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
        return  # a finding of `format` says why
    for image in sorted(sizes, key=lambda image: (-sizes[image], architectures.natural(image.arch), image.kind)):
        yield CodeSize(
            arch=image.arch,
            what=str(image),
            ptx=image.kind == "ptx",
            size=sizes[image],
            plain=plain[image],
            pieces=pieces[image],
        )
