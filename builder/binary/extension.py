"""Read a shared library once: the libraries and symbols it needs, those it provides, and how it is linked."""

from dataclasses import dataclass, field

from builder.binary import elf_file, elf_symbols
from builder.binary.elf_file import Data, ElfError, ElfFile
from builder.binary.elf_symbols import Symbol
from builder.binary.macho import Macho, MachoError
from builder.errors import BuilderError

_TEXTREL_FLAG = 4

_MAGICS = {
    b"\x7fELF": "ELF",
    b"\xfe\xed\xfa\xce": "Mach-O",
    b"\xfe\xed\xfa\xcf": "Mach-O",
    b"\xce\xfa\xed\xfe": "Mach-O",
    b"\xcf\xfa\xed\xfe": "Mach-O",
    b"\xca\xfe\xba\xbe": "Mach-O",
    b"\xca\xfe\xba\xbf": "Mach-O",
}


class ExtensionError(BuilderError):
    """A file that should be a shared library but cannot be read as one."""


def binary_format(head: bytes) -> str | None:
    """Tell the format by the first bytes of a file: `ELF`, `Mach-O` or `PE`."""
    if head[:2] == b"MZ":
        return "PE"
    return _MAGICS.get(bytes(head[:4]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A shared library as the dynamic loader sees it; `.symtab` is not used."""

    name: str
    format: str = "ELF"
    """`ELF` or `Mach-O`."""
    machine: str = "x86_64"
    needed: tuple[str, ...] = ()
    soname: str | None = None
    rpath: tuple[str, ...] = ()
    """Entries of RPATH and RUNPATH (ELF) or LC_RPATH (Mach-O), unchanged."""
    versions: tuple[tuple[str, str], ...] = ()
    """(library, version) of every symbol version that it requires, even if no symbol uses the version."""
    undefined: tuple[Symbol, ...] = ()
    defined: tuple[Symbol, ...] = ()
    textrel: bool = False
    executable_stack: bool = False
    build_id: str | None = None
    minimum: tuple[int, int] | None = None
    """The oldest macOS that it claims to run on."""
    code: tuple[tuple[int, int], ...] = ()
    """Offset and size of the executable parts of the file."""
    relocatable_device_code: tuple[tuple[int, int], ...] = field(default=())
    """Offset and size of device code that is only linker input, such as `__nv_relfatbin`."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The Python modules as which it can be imported."""
        return tuple(
            symbol.name.removeprefix("PyInit_") for symbol in self.defined if symbol.name.startswith("PyInit_")
        )

    @classmethod
    def read(cls, name: str, data: Data) -> "Extension":
        """Read the shared library `name` from its bytes.

        Raises:
            ExtensionError: it is empty, damaged, or of an unsupported kind.
        """
        kind = binary_format(bytes(data[:4]))
        if len(data) == 0:
            raise ExtensionError(f"'{name}' is empty", help="build it again")
        if kind is None:
            raise ExtensionError(
                f"'{name}' is not a shared library: it begins with {bytes(data[:4])!r}", help="build it again"
            )
        if kind == "PE":
            raise ExtensionError(
                f"'{name}' is a PE file, and only ELF and Mach-O files can be judged", help="audit it on Windows"
            )
        try:
            return cls._of_elf(name, ElfFile(data)) if kind == "ELF" else cls._of_macho(name, Macho(data))
        except (ElfError, MachoError) as error:
            remedy = "build it again for x86_64 or aarch64"
            raise ExtensionError(f"cannot read '{name}': {error}", help=remedy) from error

    @classmethod
    def _of_elf(cls, name: str, file: ElfFile) -> "Extension":
        strings, flags = file.strings, file.tag(elf_file.DT_FLAGS) or 0
        found = tuple(elf_symbols.symbols(file, strings))
        soname = file.texts(strings, elf_file.DT_SONAME)
        paths = file.texts(strings, elf_file.DT_RPATH, elf_file.DT_RUNPATH)
        return cls(
            name=name,
            machine=file.machine,
            needed=file.texts(strings, elf_file.DT_NEEDED, elf_file.DT_AUXILIARY, elf_file.DT_FILTER),
            soname=soname[0] if soname else None,
            rpath=tuple(entry for path in paths for entry in path.split(":")),
            versions=tuple(sorted(set(elf_symbols.versions(file, strings).values()))),
            undefined=tuple(symbol for symbol in found if not symbol.defined),
            defined=tuple(symbol for symbol in found if symbol.defined),
            textrel=file.tag(elf_file.DT_TEXTREL) is not None or bool(flags & _TEXTREL_FLAG),
            executable_stack=file.executable_stack,
            build_id=file.build_id,
            code=file.code,
            relocatable_device_code=tuple(
                (section.offset, section.size) for section in file.sections if section.name == "__nv_relfatbin"
            ),
        )

    @classmethod
    def _of_macho(cls, name: str, file: Macho) -> "Extension":
        found = file.symbols()
        return cls(
            name=name,
            format="Mach-O",
            machine=file.machine,
            needed=file.needed,
            soname=file.name,
            rpath=file.rpath,
            undefined=tuple(symbol for symbol in found if not symbol.defined),
            defined=tuple(symbol for symbol in found if symbol.defined),
            build_id=file.uuid,
            minimum=file.minimum,
        )
