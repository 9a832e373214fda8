"""Cells for another system than this machine's: whether they can be compiled here, and their environment."""

from dataclasses import replace

from builder import render, toolchain
from builder.config import Backend
from builder.errors import NotHereError
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.matrix.variant import built_systems
from builder.pins import Pins, PinSet, Requirement
from builder.plan.ask import Ask
from builder.render import source_scan
from builder.render.project import Project
from builder.toolchain.tool import Search, no_digest

_BACKENDS = (Backend.CPU, Backend.CUDA)
"""Backends whose device compilers run on one processor and compile for another."""
NVCC = "nvidia-cuda-nvcc"
"""The wheel that contains nvcc."""
_PROGRAMS = frozenset({"cmake", "ninja", NVCC, "nvidia-nvvm"})
"""Wheels with programs that a build runs; the others have headers and libraries of the target system."""


def require(cell: Cell, ask: Ask) -> None:
    """Refuse a cell of another system that cannot be compiled here, or was not requested.

    Raises:
        NotHereError: with the tools that this machine lacks.
    """
    remedy = f"build it on {cell.system}, or in CI: builder matrix --system {cell.system} --format github"
    message = f"{cell.variant} needs a machine of {cell.system}; this one is {toolchain.system()}"
    if not possible(cell.backend, cell.system):
        raise NotHereError(message, help=remedy)
    why = None if ask.isolation else "--no-isolation builds for what is installed here; leave it out"
    if why is None:
        try:
            toolchain.find_cross(Search(environ=ask.environ, digest=no_digest), cell.system)
        except NotHereError as error:
            why = f"{error.message}; {error.help}"
    if why is not None and ask.crosses:
        raise NotHereError(f"{cell.variant} cannot be compiled here: {why}", help=remedy)
    if not ask.crosses:
        here = "" if why else f", where --system {cell.system} compiles it"
        raise NotHereError(f"{message}{here}", help=f"{remedy}; or here{f': {why}' if why else ''}")


def require_by_nix(cell: Cell, kernel: Kernel, ask: Ask) -> None:
    """Refuse a cell of another system that Nix cannot compile here: Nix needs the pinned compilers for it.

    Raises:
        NotHereError: with the tools that are missing.
    """
    if not ask.compilers:
        here = ", where --toolchain pinned compiles it" if possible(cell.backend, cell.system) else ""
        raise NotHereError(
            f"{cell.variant} needs a machine of {cell.system}; this one is {toolchain.system()}{here}",
            help=f"build it on {cell.system}, or with the flake and --builders{here and '; or here with that'}",
        )
    require(cell, ask)
    require_no_python(cell, render.render(kernel, cell.backend, only=ask.options.only))


def possible(backend: Backend, system: str) -> bool:
    """Whether machines of this kind can compile for a system, given the compilers."""
    known = built_systems()
    here = known.get(toolchain.system())
    return here is not None and None not in (here.triple, known[system].triple) and backend in _BACKENDS


def targets() -> tuple[str, ...]:
    """Return the systems that machines of this kind can compile for, given the compilers."""
    here = toolchain.system()
    return tuple(system for system in built_systems() if system != here and possible(Backend.CPU, system))


def require_no_python(cell: Cell, project: Project) -> None:
    """Refuse a kernel that includes Python's headers: this machine's headers are for its own processor.

    Raises:
        NotHereError: it includes them.
    """
    if cell.python is not None or source_scan.needed_by(project):
        raise NotHereError(
            f"{cell.variant} includes headers of Python, and this machine has none for {cell.system}",
            help=f"build it on {cell.system}, or include <torch/all.h> if nothing of Python is used",
        )


def environment(known: Pins, wanted: PinSet, requirement: Requirement, cell: Cell) -> PinSet:
    """Return the environment of another system's cell, with programs that run on this machine.

    Raises:
        NotHereError: such a program is not pinned, or the toolkit would be this machine's, not a pinned one.
    """
    here = toolchain.system()
    own_requirement = replace(requirement, python=wanted.python, system=here)
    own = known.additional(("tools", "toolkit"), own_requirement, base=PinSet(wanted.python, here, ()))
    programs = {wheel.name: wheel for wheel in own.wheels if wheel.name in _PROGRAMS}
    lacking = {wheel.name for wheel in wanted.wheels if wheel.name in _PROGRAMS} - programs.keys()
    lacking |= {NVCC} - programs.keys() if cell.backend is Backend.CUDA else set()
    if lacking:
        raise NotHereError(
            f"{cell.variant} cannot be compiled here: {', '.join(sorted(lacking))} is not pinned for {here}",
            help=f"build it on {cell.system}",
        )
    return replace(wanted, wheels=tuple(programs.get(wheel.name, wheel) for wheel in wanted.wheels))
