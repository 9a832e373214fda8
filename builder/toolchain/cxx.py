"""Find C++ and C compilers, for this machine's system and for others."""

from dataclasses import replace
from pathlib import Path

from builder.errors import NotHereError
from builder.matrix.variant import built_systems
from builder.toolchain.tool import Search, Tool, installing

CXX_NAMES = ("c++", "g++", "clang++")
_COMPILER_PARTS = ("cc1plus", "as", "ld")
_COMPILER_FILES = ("libstdc++.so", "libgcc.a", "crt1.o", "libc.so.6", "libc_nonshared.a", "libm.so.6")
_AT_ONCE = 4
"""The number of questions that a compiler is asked in parallel; each is a process of a millisecond."""


def find(search: Search) -> Path:
    """Return the C++ compiler that CXX names, or the first one on PATH.

    Raises:
        NotHereError: there is none, or the one in CXX is missing.
    """
    wanted = search.environ.get("CXX")
    for name in (wanted,) if wanted else CXX_NAMES:
        found = search.which(name)
        if found is not None:
            return found.resolve()
    if wanted:
        raise NotHereError(f"CXX names '{wanted}', which is not there", help="unset CXX, or name a C++ compiler")
    raise NotHereError(
        f"no C++ compiler: looked for {', '.join(CXX_NAMES)} on PATH",
        help=f"{installing('g++')}; or set CXX, or pass --toolchain pinned",
    )


def compilers(
    search: Search,
    cxx: Path,
    *,
    programs: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    calls: Path | None = None,
) -> tuple[Tool, Tool]:
    """Identify a C++ compiler, and the C compiler that CC names or that belongs to it.

    `programs` and `files` are parts that only some C++ compilers have; `calls` is a program that the compiler runs.
    """
    return _identified(search, cxx, programs, files, calls), _identified(search, _c_compiler(search, cxx))


def cross_compilers(search: Search, target: str) -> tuple[Tool, Tool]:
    """Return the C++ and the C compiler for a system.

    Raises:
        NotHereError: there is none.
    """
    compiler = find_cross(search, target)
    of_path = replace(search, environ={"PATH": search.path})  # CC names the compiler for this machine's own system
    return _identified(search, compiler), _identified(search, _c_compiler(of_path, compiler))


def _c_compiler(search: Search, cxx: Path) -> Path:
    wanted = search.environ.get("CC")
    found = search.which(wanted) if wanted else None
    name = cxx.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc").replace("icpx", "icx")
    sibling = cxx.with_name(name)
    return found.resolve() if found is not None else sibling if sibling.exists() else cxx


def _identified(
    search: Search,
    path: Path,
    programs: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    calls: Path | None = None,
) -> Tool:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  start-up time, of what asks no compiler

    asked = [f"-print-prog-name={name}" for name in (*_COMPILER_PARTS, *programs)]
    asked += [f"-print-file-name={name}" for name in (*_COMPILER_FILES, *files)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = pool.map(lambda question: search.part(path, question), asked)
        version, target = pool.map(lambda argument: search.first_line(path, argument), ("--version", "-dumpmachine"))
        found = [path, *(part for part in (*parts, calls) if part is not None)]
    return Tool(path=path, version=f"{version} ({target})", digest=search.digest_all(found))


def find_cross(search: Search, target: str) -> Path:
    """Return the C++ compiler for a system. CXX is ignored: it names the one for this machine's own system.

    Raises:
        NotHereError: there is none, or it has no C library to link to.
    """
    name = f"{built_systems()[target].triple}-g++"
    found = search.which(name)
    if found is None:
        raise NotHereError(f"no C++ compiler for {target}: looked for {name} on PATH", help=installing(f"g++-{target}"))
    compiler = found.resolve()
    # Some distributions have a cross compiler that can only compile the Linux kernel.
    if search.part(compiler, "-print-file-name=libc.so.6") is None:
        raise NotHereError(
            f"'{compiler}' has no C library of {target}",
            help=f"install glibc for {built_systems()[target].triple}, or build on a machine of {target}",
        )
    return compiler
