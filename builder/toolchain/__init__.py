"""Find the tools of this machine, and identify them by their content, not by their paths."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.config import Backend
from builder.hashes import sha256_of
from builder.matrix import Cell
from builder.toolchain import cxx, device_compilers
from builder.toolchain.tool import Digest, Search, Tool


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
        host, cc = cxx.cross_compilers(search, target)
    elif backend is Backend.XPU:
        icpx, ocloc = device_compilers.find_oneapi(search, toolkit=toolkit)
        parts = {"programs": device_compilers.ONEAPI_PROGRAMS, "files": device_compilers.ONEAPI_FILES}
        host, cc = cxx.compilers(search, icpx, calls=ocloc, **parts)
    else:
        host, cc = cxx.compilers(search, cxx.find(search))
    cuda = backend is Backend.CUDA
    return Toolchain(
        cxx=host,
        cc=cc,
        cuda=device_compilers.find_cuda(search, toolkit=toolkit, root=toolkit_root) if cuda else None,
        hip=device_compilers.find_rocm(search, toolkit=toolkit) if backend is Backend.ROCM else None,
        metal=device_compilers.find_metal(search) if backend is Backend.METAL else None,
        ocloc=ocloc,
    )
