"""Make stand-ins for a GPU's libraries, so that a machine without the GPU can load its wheel, but not run it.

A stand-in has the name of the real library, and the required symbols with their versions; calling one ends the process.
"""

import mmap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from builder.binary.elf_symbols import Symbol
from builder.binary.extension import Extension
from builder.errors import ToolError
from builder.run import ask

Missing = Mapping[str, Mapping[str, AbstractSet[str]]]
"""Libraries that this machine lacks, each with the symbols needed from it, by version or an empty text."""
_SYSTEM = ("/lib64", "/usr/lib64", "/lib/{machine}-linux-gnu", "/usr/lib/{machine}-linux-gnu", "/lib", "/usr/lib")
_WRITTEN_BY_HAND = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_OF_OTHERS = ("Py", "_Py", "_Z")
_PREFIXES = {"cudart": ("cuda", "__cuda"), "cuda": ("cu",), "amdhip64": ("hip", "__hip"), "nvshmem_host": ("nvshmem",)}
"""Prefixes of functions, for libraries whose functions are not named after them."""
_PROGRAM = "extern void abort(void) __attribute__((weak));\n"
_ANNOUNCING = ("__cuda", "__hip")
"""Prefixes of functions that libraries with device code call when they are loaded, such as
`__cudaRegisterFatBinary`."""


def missing(libraries: Iterable[Path], *, search: tuple[Path, ...]) -> Missing:
    """Return the libraries that `libraries` need, directly or indirectly, and that the loader would not find.

    `search` lists folders to search before the system's, such as `torch/lib`.
    """
    loaded = list(_closure(libraries, search))
    found = {extension.soname for extension in loaded} | {Path(extension.name).name for extension in loaded}
    defined = {symbol.name for extension in loaded for symbol in extension.defined}
    wanted: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for extension in loaded:
        absent = [name for name in extension.needed if name not in found]
        for name in absent:
            wanted[name]  # adds a library even if no symbol is needed from it
        for symbol in extension.undefined:
            library = _owner(symbol, absent) if symbol.library is None else symbol.library
            if library in absent and symbol.name not in defined and set(symbol.name) <= _WRITTEN_BY_HAND:
                wanted[library][symbol.version or ""].add(symbol.name)
    return wanted


def _owner(symbol: Symbol, absent: list[str]) -> str | None:
    """Choose the missing library for a symbol without a library: by its prefix, or else the first one.

    Symbols of the interpreter, mangled C++ names and weak symbols belong to none of them.
    """
    if not absent or symbol.version is not None or symbol.binding == "weak" or symbol.name.startswith(_OF_OTHERS):
        return None
    name = symbol.name.lower()
    stems = {library: library.removeprefix("lib").partition(".")[0].lower() for library in absent}
    named = [library for library, stem in stems.items() if name.startswith(_PREFIXES.get(stem, (stem,)))]
    return max(named, key=len, default=absent[0])


def _closure(libraries: Iterable[Path], search: tuple[Path, ...]) -> Iterator[Extension]:
    """Yield the libraries and all that they need, from where the loader would find them."""
    waiting, seen = [path.resolve() for path in libraries], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        # torch's libraries have hundreds of megabytes, of which the loader reads little.
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            extension = Extension.read(str(path), data)
        yield extension
        folders = (*search, *(Path(folder.format(machine=extension.machine)) for folder in _SYSTEM))
        candidates = ([folder / name for folder in folders] for name in extension.needed)
        firsts = (next((each for each in places if each.is_file()), None) for places in candidates)
        waiting.extend(first.resolve() for first in firsts if first is not None)


def make(wanted: Missing, folder: Path, *, cc: Path) -> None:
    """Compile a stand-in for each library into `folder`.

    Raises:
        ToolError: the C compiler fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for library, symbols in sorted(wanted.items()):
        program, source, script = _PROGRAM, folder / f"{library}.c", folder / f"{library}.map"
        for name in sorted(set().union(*symbols.values())):
            announcing = name.startswith(_ANNOUNCING)
            program += f"void *{name}(void) {{ return 0; }}\n" if announcing else f"void {name}(void) {{ abort(); }}\n"
        source.write_text(program, encoding="ascii")
        versions = [(version, sorted(names)) for version, names in sorted(symbols.items()) if version]
        lines = [f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions]
        script.write_text("".join(lines), encoding="ascii")
        command = [str(cc), "-shared", "-fPIC", "-w", "-nostdlib", "-fno-builtin", f"-Wl,-soname,{library}"]
        command += [f"-Wl,--version-script,{script}"] if versions else []
        done = ask([*command, "-o", folder / library, source])
        if done.returncode != 0:
            raise ToolError(f"cannot make a stand-in for '{library}'\n{done.stderr.strip()}")
