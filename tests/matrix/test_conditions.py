"""Components with a condition: which cells have them, and what is said of the others."""

import pytest

from builder.ci.plan import make, text
from builder.config import Backend, Version
from builder.config.source_tables import component
from builder.errors import BuilderError
from builder.lint import cells as lint_cells
from builder.matrix import absent_components, architectures, coverage, rows, rules, select
from builder.matrix.rules import CellFacts
from builder.matrix.selection import Scope
from tests.given.cells import cell_of
from tests.given.kernels import of_text

GENERAL = '[general]\nname = "case"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cuda"]\n[torch]\n'
CUDA = '\n[kernel.{name}]\nbackend = "cuda"\ndepends = []\nsrc = ["a.cu"]\n{lines}\n'


def kernel(*parts):
    return of_text(GENERAL + "".join(CUDA.format(name=name, lines=lines) for name, lines in parts))


def test_a_component_is_left_out_where_its_condition_does_not_hold():
    found = kernel(("all", ""), ("new", 'when = { cuda = ">=13.0" }'), ("old", 'when = { cuda = "<13.0" }')).config
    absent = {toolkit: absent_components(found, cell_of(found, toolkit=toolkit)) for toolkit in ("12.6", "13.0")}
    assert absent["12.6"] == ("new",)
    assert absent["13.0"] == ("old",)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ('cuda = ">=13.0"', "CUDA 12.8 is not >=13.0"),
        ('torch = "<2.12"', "torch 2.12 is not <2.12"),
        ('system = ["aarch64-linux"]', "x86_64-linux is not aarch64-linux"),
        ('arch = ["10.0", "9.0a"]', "it is not compiled for 10.0 or 9.0a"),
        ('cuda = ">=12.8", torch = "==2.12", system = "x86_64-linux", arch = "9.0"', None),
    ],
)
def test_the_first_entry_that_does_not_hold_is_the_reason(when, message):
    part = kernel(("one", f'cuda-capabilities = ["8.0", "9.0+PTX"]\nwhen = {{ {when} }}')).config.kernel["one"]
    why = rules.unmet(part, CellFacts(toolkit="12.8", torch=Version("2.12"), system="x86_64-linux"))
    assert (None if why is None else why.message) == message


def test_an_architecture_is_that_of_the_machine_code_of_a_pair():
    place = CellFacts(toolkit="13.0", torch=Version("2.13"), system="x86_64-linux")
    for arch, holds in (("8.6", True), ("8.0", False), ("10.0f", True), ("10.0", False)):
        lines = f'cuda-capabilities = ["8.0:8.6", "10.0f:10.0"]\nwhen = {{ arch = "{arch}" }}'
        assert (rules.unmet(kernel(("one", lines)).config.kernel["one"], place) is None) is holds


def test_an_architecture_holds_in_a_quick_build_for_it_alone():
    part = kernel(("one", 'when = { arch = "9.0" }')).config.kernel["one"]
    place = CellFacts(toolkit="13.0", torch=Version("2.12"), system="x86_64-linux")
    assert rules.unmet(part, place) is None
    assert rules.unmet(part, place, ("9.0",)) is None
    assert rules.unmet(part, place, ("8.0",)) is not None


def test_an_architecture_of_rocm_is_one_that_the_component_compiles():
    make_part = component(Backend.ROCM)
    assert "gfx942" in architectures.compiled(make_part(depends=(), src=()), None)
    assert architectures.compiled(make_part(depends=(), src=(), rocm_archs=("gfx90a",)), None) == {"gfx90a"}


def test_a_row_in_which_every_component_is_left_out_gives_no_cell_and_says_why():
    one = kernel(("a", 'when = { cuda = ">=13.0" }'), ("b", 'cuda-minver = "13.0"'))
    said = text.explain(make(one, rows(), Scope()))
    assert "cuda 12.6, x86_64-linux: left out [when]" in said
    assert "every component is left out: a: CUDA 12.6 is not >=13.0" in said
    assert "decided by build.toml:13 (kernel.a.when.cuda)" in said
    assert "cu130" in said


def test_a_toolkit_below_cuda_minver_alone_leaves_no_row_out():
    late, usual = kernel(("a", 'cuda-minver = "99.0"')), kernel(("a", ""))
    assert len(select(late.config, rows())) == len(select(usual.config, rows()))


def test_the_plan_says_which_component_is_left_out_of_a_cell_and_why():
    said = text.explain(make(kernel(("a", ""), ("b", 'when = { torch = ">=2.14" }')), rows(), Scope()))
    assert "component 'b' is left out: torch 2.13 is not >=2.14" in said


def test_a_quick_build_that_leaves_nothing_to_compile_is_refused():
    found = kernel(("a", 'when = { arch = "9.0" }')).config
    cell = cell_of(found, toolkit="13.0")
    coverage.require(found, cell, ("9.0",))
    with pytest.raises(BuilderError, match=r"it is not compiled for 9\.0"):
        coverage.require(found, cell, ("8.0",))


def test_check_warns_of_a_condition_that_holds_in_no_row():
    one = kernel(("a", ""), ("b", 'when = { torch = ">=99.0" }'))
    (problem,) = [found for found in lint_cells.bounds(one) if found.code == "B131"]
    assert (problem.severity, problem.key) == ("warning", ("kernel", "b", "when"))
    assert problem.help.endswith("is not >=99.0")
