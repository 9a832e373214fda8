"""Check the framework of the current Python, for builds without isolation."""

import re

from builder.config import Backend, Framework
from builder.errors import NotHereError
from builder.make.framework import FrameworkIdentity, identity_of, python_of_torch
from builder.make.job import InstalledPackages
from builder.matrix import Cell
from builder.matrix.variant import dotted
from builder.toolchain.this_machine import CurrentPython


def framework_of(cell: Cell, has: CurrentPython) -> tuple[InstalledPackages, FrameworkIdentity]:
    """Return the path and the identity of an interpreter's framework for a cell.

    Raises:
        NotHereError: there is none, or it is not the cell's.
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
    python = "" if cell.python is None else re.sub(r"^cpython-(\d+).*", r"cp\1", python_of_torch(site))
    if cell.python is not None and python != cell.python:
        raise NotHereError(
            f"{cell.variant} needs a torch for Python {dotted(cell.python)}; the current environment has one for "
            f"{dotted(python) or 'another'}",
            help=f"name a Python {dotted(cell.python)} that has torch with --python, or build with isolation",
        )
    return InstalledPackages(python=has.python, site_packages=site), framework


def _require(cell: Cell, found: FrameworkIdentity) -> None:
    """Refuse a torch of another version than the cell's; a stable ABI cell accepts any."""
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
    # The installed toolkit must have a known release; torch does not name the release of oneAPI.
    named = cell.toolkit is not None and cell.backend is not Backend.XPU
    if fact is not None and (not toolkit or (named and not f"{toolkit}.".startswith(f"{cell.toolkit}."))):
        names = (backend.facts.torch_device or "" for backend in Backend)
        built_for = ", ".join(f"{name} {found.facts[name]}" for name in names if name in found.facts)
        raise NotHereError(
            f"{cell.variant} needs a torch for {cell.backend} {cell.toolkit}; the current environment has "
            f"{found.version}, which is for {built_for or 'cpu'}",
            help=f"install the build of torch {cell.torch} for {cell.backend} {cell.toolkit}, or build with isolation",
        )
