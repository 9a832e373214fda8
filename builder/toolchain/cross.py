"""The C++ and C compilers for another system than this machine's, such as Debian's `aarch64-linux-gnu-g++`."""

from dataclasses import replace
from pathlib import Path

from builder.errors import NotHereError
from builder.matrix import systems
from builder.toolchain import cxx, distribution
from builder.toolchain.tool import Search, Tool


def installing(target: str) -> str:
    """Return the command that installs the compiler for a system."""
    return distribution.installing(f"g++-{target}")


def find(search: Search, target: str) -> Path:
    """Return the C++ compiler for a system. CXX names the one for this machine's own, and is not asked.

    Raises:
        NotHereError: there is none, or it has no C library to link to.
    """
    name = f"{systems.built()[target].triple}-g++"
    found = search.which(name)
    if found is None:
        raise NotHereError(f"no C++ compiler for {target}: looked for {name} on PATH", help=installing(target))
    compiler = found.resolve()
    # Some distributions have a compiler for kernels of the system alone.
    if search.part(compiler, "-print-file-name=libc.so.6") is None:
        raise NotHereError(
            f"'{compiler}' has no C library of {target}",
            help=f"install glibc for {systems.built()[target].triple}, or build on a machine of {target}",
        )
    return compiler


def compilers(search: Search, target: str) -> tuple[Tool, Tool]:
    """Return the C++ and the C compiler for a system.

    Raises:
        NotHereError: there is none.
    """
    compiler = find(search, target)
    of_path = replace(search, environ={"PATH": search.path})  # CC names the one for this machine's own system
    c_compiler = cxx.c_compiler(of_path, compiler)
    return cxx.identify(search, compiler), cxx.identify(search, c_compiler)
