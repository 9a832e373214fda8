"""Stand-ins for a GPU's libraries, so that a wheel for it can be loaded, not run, on a machine that has none.

A stand-in has the name and the versioned symbols asked of the real library; calling one of them ends the process.
"""

import mmap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.binary.elf_symbols import Symbol
from builder.binary.extension import Extension
from builder.errors import ToolError
from builder.run import ask

_SYSTEM = ("/lib64", "/usr/lib64", "/lib/{machine}-linux-gnu", "/usr/lib/{machine}-linux-gnu", "/lib", "/usr/lib")
_WRITTEN_BY_HAND = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_OF_OTHERS = ("Py", "_Py", "_Z")
_PREFIXES = {"cudart": ("cuda", "__cuda"), "cuda": ("cu",), "amdhip64": ("hip", "__hip"), "nvshmem_host": ("nvshmem",)}
"""Prefixes of the functions of libraries that are not named as these are."""
_PROGRAM = "extern void abort(void) __attribute__((weak));\n"
_ANNOUNCING = ("__cuda", "__hip")
"""The prefixes of functions that constructors of a library with device code call, such as `__cudaRegisterFatBinary`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A library that this machine lacks, and the symbols that are needed from it."""

    name: str
    symbols: Mapping[str, tuple[str, ...]]
    """Version, or an empty string, to the names asked for."""


def missing(libraries: Iterable[Path], *, search: tuple[Path, ...]) -> tuple[Missing, ...]:
    """Return the libraries that `libraries` need, directly or not, and that the loader would not find.

    Args:
        libraries: Shared objects to be loaded.
        search: Folders that come before those of the system, such as `torch/lib`.
    """
    loaded = list(_closure(libraries, search))
    found = {extension.soname for extension in loaded} | {Path(extension.name).name for extension in loaded}
    defined = {symbol.name for extension in loaded for symbol in extension.defined}
    wanted: dict[str, dict[str, set[str]]] = {}
    for extension in loaded:
        absent = [name for name in extension.needed if name not in found]
        for name in absent:
            wanted.setdefault(name, defaultdict(set))
        for symbol in extension.undefined:
            library = _owner(symbol, absent) if symbol.library is None else symbol.library
            if library not in absent or symbol.name in defined or not set(symbol.name) <= _WRITTEN_BY_HAND:
                continue
            wanted[library][symbol.version or ""].add(symbol.name)
    return tuple(
        Missing(name=name, symbols={version: tuple(sorted(names)) for version, names in sorted(symbols.items())})
        for name, symbols in sorted(wanted.items())
    )


def _owner(symbol: Symbol, absent: list[str]) -> str | None:
    """Choose the missing library for a symbol that names none: by its prefix, or else the first.

    Symbols of the interpreter, mangled C++ names and weak symbols belong to none of them.
    """
    if not absent or symbol.version is not None or symbol.binding == "weak" or symbol.name.startswith(_OF_OTHERS):
        return None
    name = symbol.name.lower()
    stems = {library: library.removeprefix("lib").partition(".")[0].lower() for library in absent}
    named = [library for library, stem in stems.items() if name.startswith(_PREFIXES.get(stem, (stem,)))]
    return max(named, key=len, default=absent[0])


def _closure(libraries: Iterable[Path], search: tuple[Path, ...]) -> Iterator[Extension]:
    """Yield the libraries and all that they need, from where the loader would take it."""
    waiting, seen = [path.resolve() for path in libraries], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        extension = _read(path)
        yield extension
        folders = (*search, *(Path(folder.format(machine=extension.machine)) for folder in _SYSTEM))
        candidates = ([folder / name for folder in folders] for name in extension.needed)
        firsts = (next((each for each in places if each.is_file()), None) for places in candidates)
        waiting.extend(first.resolve() for first in firsts if first is not None)


def _read(path: Path) -> Extension:
    """Read a library through a map: torch's are hundreds of megabytes, of which the loader reads a few."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return Extension.read(str(path), data)


def make(wanted: Iterable[Missing], folder: Path, *, cc: Path) -> None:
    """Compile a stand-in for each library into `folder`.

    Raises:
        ToolError: the C compiler refuses one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for library in wanted:
        names = sorted({name for names in library.symbols.values() for name in names})
        source, script = folder / f"{library.name}.c", folder / f"{library.name}.map"
        source.write_text(_PROGRAM + "".join(map(_function, names)), encoding="ascii")
        versions = {version: names for version, names in library.symbols.items() if version}
        script.write_text(
            "".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items()),
            encoding="ascii",
        )
        command = [str(cc), "-shared", "-fPIC", "-w", "-nostdlib", "-fno-builtin", f"-Wl,-soname,{library.name}"]
        command += [f"-Wl,--version-script,{script}"] if versions else []
        done = ask([*command, "-o", folder / library.name, source])
        if done.returncode != 0:
            raise ToolError(f"cannot make a stand-in for '{library.name}'\n{done.stderr.strip()}")


def _function(name: str) -> str:
    if name.startswith(_ANNOUNCING):
        return f"void *{name}(void) {{ return 0; }}\n"
    return f"void {name}(void) {{ abort(); }}\n"
