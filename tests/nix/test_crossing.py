"""Cells of another system: Nix chooses the wheels that the local engine chooses, and refuses the same cells."""

import pytest

from builder import kernel, pins, toolchain
from builder.config import Backend
from builder.errors import NotHereError
from builder.matrix import rows, select
from builder.plan import crossing
from tests import needs
from tests.nix.evaluating import EXAMPLES, KNOWN, library
from tests.nix.test_agreement import as_nix_has_it

pytestmark = [
    pytest.mark.nix,
    needs.only_with("nix-instantiate"),
    pytest.mark.skipif(toolchain.system() != "x86_64-linux", reason="programs are pinned for x86_64-linux"),
]
PYTHON = "cp311"


def taken(cell):
    """Return the wheels of a cell as the local engine has them; None where it refuses it."""
    requirement = pins.Requirement.of(cell, PYTHON)
    try:
        found = crossing.environment(KNOWN, KNOWN.environment(requirement), requirement, cell)
    except (NotHereError, pins.MissingPinsError):
        return None
    return [wheel.file for wheel in found.wheels]


def test_nix_takes_the_wheels_and_programs_that_the_local_engine_takes():
    cells = [
        cell
        for path in EXAMPLES
        for cell in select(kernel.load(path).config, rows(), unbundled=True)
        if cell.system == "aarch64-linux" and cell.backend in {Backend.CPU, Backend.CUDA} and not cell.noarch
    ]
    cells = list({pins.Requirement.of(cell, PYTHON): cell for cell in cells}.values())
    expected = [taken(cell) for cell in cells]
    assert library("crossed", cells=[as_nix_has_it(cell) for cell in cells], python=PYTHON) == expected
    assert any(found is None for found in expected)  # nvcc of CUDA 12
    several = [found for found in expected if found is not None]
    assert any(name.endswith("_aarch64.whl") for name in several[0])
    assert any(name.startswith("ninja") and name.endswith("_x86_64.whl") for name in several[0])


def test_only_the_pinned_compilers_compile_for_another_system():
    (cell, *_) = (
        cell
        for path in EXAMPLES
        for cell in select(kernel.load(path).config, rows(), unbundled=True)
        if cell.system == "aarch64-linux" and cell.backend is Backend.CPU
    )
    table = as_nix_has_it(cell)
    assert library("crossed", cells=[table], python=PYTHON) != [None]
    assert library("crossed", cells=[table], python=PYTHON, compilers=False) == [None]
