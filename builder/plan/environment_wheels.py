"""The wheels of the environment that a cell is built in: of its framework and toolkit, and of what the kernel names."""

from collections.abc import Mapping
from dataclasses import replace

from builder.config import Config, libraries
from builder.make import header_folders
from builder.matrix import Cell, linked_libraries
from builder.pins import Pins, PinSet, Requirement


def of(
    known: Pins,
    requirement: Requirement,
    config: Config,
    cell: Cell,
    *,
    environ: Mapping[str, str],
    any_python: bool = False,
) -> PinSet:
    """Return the wheels that a cell is built with, sorted by name, as `environmentOf` of `cells.nix` does.

    With `any_python`, for a kernel that needs nothing of Python, those of others serve where one is not pinned.

    Raises:
        MissingPinsError: some part is not pinned for this Python and system.
    """
    base = (known.environment_of_any_python if any_python else known.environment)(requirement)
    headers = header_folders.wheels(config, cell.backend, environ=environ)
    linked = known.additional(libraries.parts(linked_libraries(config, cell)), requirement, base=base)
    wheels = sorted((*base.wheels, *headers, *linked.wheels), key=lambda wheel: wheel.name)
    return replace(base, wheels=tuple(wheels))
