"""Builds for another system or Python than this machine has: CMake is told, and qemu loads them or nothing does."""

from collections.abc import Mapping
from pathlib import Path

from builder import toolchain
from builder.errors import NotHereError
from builder.make.job import BuildJob, NotLoadable
from builder.make.spec import BuildSpec, InstalledPackages
from builder.matrix.variant import dotted
from builder.toolchain import emulator
from builder.toolchain.emulator import Emulator
from builder.toolchain.tool import Search


def cmake_defines(job: BuildJob, *, roots: tuple[Path, ...]) -> dict[str, str]:
    """Return CMake's variables of a cross build, which no rendered project has; `roots` are of the other system."""
    if not toolchain.crosses(job.cell):
        return {}
    found = (*roots, *job.headers.values())
    return {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": job.cell.system.partition("-")[0],
        # Libraries of this machine's own folders are for another processor; programs in the roots do not run.
        "CMAKE_FIND_ROOT_PATH": ";".join(map(str, found)),
        "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY": "ONLY",
        "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
    }


def loading(spec: BuildSpec, environ: Mapping[str, str]) -> Emulator | NotLoadable | None:
    """Return what loads a wheel for another system, or why nothing can; None where it is loaded as any other."""
    cell, environment = spec.cell, spec.environment
    if isinstance(environment, InstalledPackages):
        return None
    others = environment.pins.other_pythons
    if toolchain.crosses(cell):
        search = Search(environ=environ, digest=lambda path: path.name)
        try:
            return emulator.find(search, cell.system, python=(*others, environment.pins.python)[0])
        except NotHereError as error:
            return NotLoadable(
                reason=f"it was compiled on {toolchain.system()}, where {error.message}",
                help=f"load it on a machine of {cell.system}; or {error.help}",
            )
    if others:
        return NotLoadable(
            reason=f"its {cell.framework.value} is pinned for Python {' and '.join(map(dotted, others))} alone",
            help=f"uv python install {dotted(others[-1])}, and build it again",
        )
    return None
