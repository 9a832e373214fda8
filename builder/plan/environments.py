"""The environment that a cell is built in: pinned wheels, or what the current Python has."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from builder.config import Backend, Config, Framework, libraries
from builder.errors import NotHereError
from builder.make import header_folders
from builder.make.framework import FrameworkIdentity, identity_of, python_of_torch
from builder.make.spec import InstalledPackages
from builder.matrix import Cell, linked_libraries
from builder.matrix.variant import dotted
from builder.pins import Pins, PinSet, Requirement
from builder.toolchain.this_machine import CurrentPython


def pinned_wheels(
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
    base = known.environment(requirement, any_python=any_python)
    headers = header_folders.wheels(config, cell.backend, environ=environ)
    linked = known.additional(libraries.parts(linked_libraries(config, cell)), requirement, base=base)
    wheels = sorted((*base.wheels, *headers, *linked.wheels), key=lambda wheel: wheel.name)
    return replace(base, wheels=tuple(wheels))


def current(cell: Cell, has: CurrentPython) -> tuple[InstalledPackages, FrameworkIdentity]:
    """Return the path and the identity of an interpreter's framework for a cell.

    Raises:
        NotHereError: there is none, or it is not the one of the cell.
    """
    name, site = "torch", has.torch
    if cell.framework is Framework.TVM_FFI:
        name, site = "tvm_ffi", has.tvm_ffi
    elif cell.framework is Framework.CTYPES:
        name, site = "folder of packages", has.packages
    if site is None:
        raise NotHereError(
            f"'{has.python}' has no {name}", help=f"install {name} there, or build without --no-isolation"
        )
    framework = identity_of(cell.framework, site)
    _require(cell, framework)
    _require_python(cell, site)
    return InstalledPackages(python=has.python, site_packages=site), framework


def _require_python(cell: Cell, site_packages: Path) -> None:
    """Refuse a torch for another Python than the cell's, where it is for one alone."""
    if cell.python is None:
        return
    python = re.sub(r"^cpython-(\d+).*", r"cp\1", python_of_torch(site_packages))
    if python != cell.python:
        raise NotHereError(
            f"{cell.variant} needs a torch for Python {dotted(cell.python)}; the current environment has one for "
            f"{dotted(python) or 'another'}",
            help=f"name a Python {dotted(cell.python)} that has torch with --python, or build with isolation",
        )


def _require(cell: Cell, found: FrameworkIdentity) -> None:
    """Refuse a torch of another version than the cell's; a stable ABI cell builds with any."""
    if cell.framework is not Framework.TORCH or cell.stable_abi is not None:
        return
    version = found.version.partition("+")[0]
    minor = ".".join(version.split(".", 2)[:2])
    if minor != str(cell.torch):
        raise NotHereError(
            f"{cell.variant} needs torch {cell.torch}; the current environment has {found.version}",
            help=f"install torch {cell.torch}, or build with isolation, or name a cell of torch {minor}",
        )
    fact = cell.backend.facts.torch_device
    toolkit = found.facts.get(fact or "", "")
    if fact is not None and not _is_release(toolkit, cell.toolkit if cell.backend is not Backend.XPU else None):
        names = (backend.facts.torch_device or "" for backend in Backend)
        built_for = ", ".join(f"{name} {found.facts[name]}" for name in names if name in found.facts)
        raise NotHereError(
            f"{cell.variant} needs a torch for {cell.backend} {cell.toolkit}; the current environment has "
            f"{found.version}, which is for {built_for or 'cpu'}",
            help=f"install the build of torch {cell.torch} for {cell.backend} {cell.toolkit}, or build with isolation",
        )


def _is_release(version: str, release: str | None) -> bool:
    """Whether a toolkit of a known release is installed; torch does not name the release of oneAPI."""
    return version != "" and (release is None or f"{version}.".startswith(f"{release}."))
