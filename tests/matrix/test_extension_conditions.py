"""Extensions with a condition: which cells have them, and what is said of the others."""

from dataclasses import replace

import pytest

from builder.ci.plan import make, text
from builder.config import Backend
from builder.errors import BuilderError
from builder.lint import cells as lint_cells
from builder.matrix import (
    absent_components,
    coverage,
    extensions_of,
    linked_libraries,
    rows,
    select,
    without_absent_extensions,
)
from builder.matrix.selection import Scope
from builder.wheel.core_metadata import requirements
from tests.given.kernels import of_text

BODY = """
[torch]
[kernel.a]
backend = "cuda"
depends = []
src = ["a.cu"]
[kernel.b]
backend = "cuda"
depends = []
src = ["b.cu"]
extension = "moe"
cuda-capabilities = ["8.0", "9.0a"]
{part}
[extension.moe]
libraries = ["nvjpeg"]
when = {{ {when} }}
"""
GENERAL = '[general]\nname = "case"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cuda"]\n'


def kernel(when, part=""):
    return of_text(GENERAL + BODY.format(when=when, part=part))


def by_toolkit(found):
    cells = select(found, [row for row in rows() if row.backend is Backend.CUDA and row.system == "x86_64-linux"])
    return {cell.toolkit: cell for cell in cells}


@pytest.mark.parametrize(
    ("when", "has"),
    [
        ('cuda = ">=13.0"', {"12.6": False, "13.0": True}),
        ('torch = ">=99.0"', {"12.6": False, "13.0": False}),
        ('system = "aarch64-linux"', {"12.6": False, "13.0": False}),
        ('arch = "9.0a"', {"12.6": True, "13.0": True}),
        ('arch = "9.0"', {"12.6": False, "13.0": False}),
    ],
)
def test_a_cell_leaves_one_extension_out_and_is_built(when, has):
    found = kernel(when).config
    cells = by_toolkit(found)
    assert {toolkit: bool(extensions_of(found, cells[toolkit])) for toolkit in has} == has
    assert {toolkit: absent_components(found, cells[toolkit]) == () for toolkit in has} == has
    assert cells.keys() == by_toolkit(of_text(GENERAL + BODY.partition("[kernel.b]")[0]).config).keys()


def test_a_wheel_requires_nothing_for_an_extension_that_it_has_not():
    found = kernel('cuda = ">=13.0"').config
    cells = by_toolkit(found)
    named = {toolkit: " ".join(requirements(found, cells[toolkit], "2.13.0")) for toolkit in ("12.6", "13.0")}
    assert "nvjpeg" not in named["12.6"]
    assert "nvjpeg" in named["13.0"]
    assert without_absent_extensions(found, cells["12.6"]).extension == {}
    assert without_absent_extensions(found, cells["13.0"]) == found


@pytest.mark.parametrize(
    ("when", "has"),
    [
        ('cuda = ">=13.0"', {"12.6": False, "13.0": True}),
        ('torch = ">=99.0"', {"12.6": False, "13.0": False}),
        ('cuda = ">=13.0", arch = "9.0"', {"12.6": False, "13.0": True}),
    ],
)
def test_a_build_links_to_nothing_of_an_extension_that_its_cell_has_for_no_gpu(when, has):
    found = kernel(when).config
    cells = by_toolkit(found)
    assert {toolkit: linked_libraries(found, cells[toolkit]) == ("nvjpeg",) for toolkit in has} == has


def test_a_build_links_to_nothing_of_a_component_or_an_extension_that_is_left_out():
    found = kernel('cuda = ">=12.0"', part='libraries = ["curand"]\nwhen = { cuda = ">=13.0" }').config
    cell = by_toolkit(found)["13.0"]
    older = replace(cell, toolkit="12.6")
    assert linked_libraries(found, cell) == ("nvjpeg", "curand")
    assert linked_libraries(found, older) == ("nvjpeg",)
    assert linked_libraries(kernel('cuda = ">=13.0"', part='libraries = ["curand"]').config, older) == ()


def test_a_row_in_which_a_present_extension_would_be_empty_gives_no_cell():
    found = kernel('torch = ">=2.0"', part='when = { cuda = ">=13.0" }').config
    assert "12.6" not in by_toolkit(found)
    assert "12.6" in by_toolkit(kernel('cuda = ">=13.0"', part='when = { cuda = ">=13.0" }').config)


def test_the_plan_says_which_extension_is_left_out_of_a_cell_why_and_where():
    plan = make(kernel('cuda = ">=13.0"'), rows(), Scope())
    said = text.explain(plan)
    assert "component 'b' is left out with the extension 'moe': CUDA 12.6 is not >=13.0" in said
    assert "left out [when]" not in said
    assert {(note.rule, note.key) for note in plan.notes} == {("when", ("extension", "moe", "when", "cuda"))}


def test_a_quick_build_leaves_out_an_extension_for_other_gpus_and_compiles_the_rest():
    found = kernel('arch = "9.0a"').config
    cell = by_toolkit(found)["13.0"]
    coverage.require(found, cell, ("8.0",))
    assert extensions_of(found, cell, ("8.0",)) == ()
    assert extensions_of(found, cell, ("9.0",)) == ("moe",)


def test_a_present_extension_without_code_for_the_gpus_of_a_quick_build_is_refused():
    found = kernel('cuda = ">=12.0"').config
    cell = by_toolkit(found)["13.0"]
    with pytest.raises(BuilderError, match="'b' has no code for 12"):
        coverage.require(found, cell, ("12.0",))


def test_check_warns_of_an_extension_that_no_wheel_has():
    (problem,) = [found for found in lint_cells.bounds(kernel('torch = ">=99.0"')) if found.code == "B131"]
    assert (problem.severity, problem.key) == ("warning", ("extension", "moe", "when"))
    assert problem.help.endswith("is not >=99.0")
    assert not list(lint_cells.bounds(kernel('torch = ">=2.0"')))
