"""Find the compilers of this machine, and identify them by their content, not by their paths."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from builder.config import Backend
from builder.errors import NotHereError
from builder.hashes import sha256_of
from builder.matrix import Cell
from builder.matrix.variant import built_systems
from builder.toolchain import device_compilers
from builder.toolchain.tool import Digest, Search, Tool, installing

CXX_NAMES = ("c++", "g++", "clang++")
_COMPILER_PARTS = ("cc1plus", "as", "ld")
_COMPILER_FILES = ("libstdc++.so", "libgcc.a", "crt1.o", "libc.so.6", "libc_nonshared.a", "libm.so.6")
_AT_ONCE = 4
"""The number of questions that a compiler is asked in parallel; each is a process of a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The compilers that a cell needs."""

    cxx: Tool
    """For XPU, oneAPI's compiler, which also compiles for the device."""
    cc: Tool
    cuda: Tool | None = None
    """nvcc; its toolkit is two folders up."""
    hip: Tool | None = None
    """hipcc; its ROCm is two folders up."""
    metal: Tool | None = None
    ocloc: Path | None = None
    """The program that oneAPI's compiler runs, by name, to make machine code for GPUs: its folder must be on PATH."""

    @property
    def identity(self) -> Mapping[str, str]:
        """The identity of the tools, without their paths."""
        tools = {"cxx": self.cxx, "cc": self.cc, "cuda": self.cuda, "hip": self.hip, "metal": self.metal}
        return {
            f"{name}-{fact}": value
            for name, tool in tools.items()
            if tool is not None
            for fact, value in (("version", tool.version), ("digest", tool.digest))
        }


def system() -> str:
    """Return this machine's system, such as `x86_64-linux`."""
    machine = os.uname().machine
    return f"{'aarch64' if machine == 'arm64' else machine}-{'darwin' if sys.platform == 'darwin' else 'linux'}"


def crosses(cell: Cell) -> bool:
    """Whether a cell is compiled for another system than this machine's."""
    return not cell.noarch and cell.system != system()


def of_cell(
    cell: Cell, *, environ: Mapping[str, str], root: Path | None = None, digest: Digest | None = None
) -> Toolchain | None:
    """Return the tools for a cell; `root` is a toolkit from pinned wheels. None for pure Python.

    Raises:
        NotHereError: a tool is missing or has another release; the message says how to get it.
        ToolError: a tool does not work.
    """
    if cell.noarch:
        return None
    target = cell.system if crosses(cell) else None
    return find(cell.backend, environ=environ, toolkit=cell.toolkit, toolkit_root=root, digest=digest, target=target)


def find(
    backend: Backend,
    *,
    environ: Mapping[str, str],
    toolkit: str | None = None,
    toolkit_root: Path | None = None,
    digest: Digest | None = None,
    target: str | None = None,
) -> Toolchain:
    """Return the tools for `backend`; `toolkit_root` is a toolkit from pinned wheels.

    With a `target`, such as `aarch64-linux`, the C++ and C compilers are for that system.

    Raises:
        NotHereError: a tool is missing or has another release; the message says how to get it.
        ToolError: a tool does not work.
    """
    search = Search(environ=environ, digest=digest or sha256_of)
    ocloc = None
    if target is not None:
        host, cc = cross_compilers(search, target)
    elif backend is Backend.XPU:
        icpx, ocloc = device_compilers.find_oneapi(search, toolkit=toolkit)
        parts = {"programs": device_compilers.ONEAPI_PROGRAMS, "files": device_compilers.ONEAPI_FILES}
        host, cc = compilers(search, icpx, calls=ocloc, **parts)
    else:
        host, cc = compilers(search, find_cxx(search))
    cuda = backend is Backend.CUDA
    return Toolchain(
        cxx=host,
        cc=cc,
        cuda=device_compilers.find_cuda(search, toolkit=toolkit, root=toolkit_root) if cuda else None,
        hip=device_compilers.find_rocm(search, toolkit=toolkit) if backend is Backend.ROCM else None,
        metal=device_compilers.find_metal(search) if backend is Backend.METAL else None,
        ocloc=ocloc,
    )


def find_cxx(search: Search) -> Path:
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
