"""The wheels of the environment that a cell is built in: of its framework and toolkit, and of what the kernel names."""

from collections.abc import Mapping
from dataclasses import replace

from builder.build import header_folders
from builder.config import Backend, Config, libraries
from builder.pins import Pins, PinSet, Requirement


def of(
    known: Pins, requirement: Requirement, config: Config, backend: Backend, *, environ: Mapping[str, str]
) -> PinSet:
    """Return the wheels that a cell is built with, sorted by name, as `environmentOf` of `cells.nix` does.

    Raises:
        MissingPinsError: some part is not pinned for this Python and system.
    """
    base = known.environment(requirement)
    headers = header_folders.wheels(config, backend, environ=environ)
    linked = known.additional(libraries.parts(config.libraries(backend)), requirement, base=base)
    wheels = sorted((*base.wheels, *headers, *linked.wheels), key=lambda wheel: wheel.name)
    return replace(base, wheels=tuple(wheels))
