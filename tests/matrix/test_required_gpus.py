"""GPUs that a kernel requires, against what each cell would have code for: known before anything is built."""

import pytest

from builder.ci.plan import make
from builder.config import Backend
from builder.errors import BuilderError
from builder.lint import cells
from builder.matrix import coverage, rows
from builder.matrix.selection import Scope
from tests.given.cells import cell_of
from tests.matrix.test_coverage import kernel


def unserved(cuda, toolkit, gpus, *, more=""):
    one = kernel(cuda=f"cuda-capabilities = {cuda}\n{more}\n[require]\ngpus = {gpus}").config
    return [str(name) for name, _ in coverage.unserved(one, cell_of(one, backend=Backend.CUDA, toolkit=toolkit))]


@pytest.mark.parametrize(
    ("cuda", "toolkit", "gpus", "lacking"),
    [
        (["9.0"], "13.0", ["H100"], []),
        (["8.0"], "13.0", ["H100", "A100"], ["H100"]),
        (["8.0+PTX"], "13.0", ["H100"], []),
        (["9.0a"], "13.0", ["H100", "A100"], ["A100"]),
        (["9.0", "10.3a"], "12.6", ["B300"], ["B300"]),
        (["9.0", "10.3a"], "13.0", ["B300"], []),
        (["10.0f"], "13.0", ["10.3", "11.0"], ["11.0"]),
        (["11.0"], "13.0", ["Jetson Thor"], []),
        (["8.0:8.6"], "13.0", ["L4", "A100"], ["A100"]),
        (["10.0f:10.0"], "12.6", ["B200"], ["B200"]),
        (["10.0f:10.0"], "13.0", ["B200", "B300"], []),
    ],
    ids=str,
)
def test_a_required_gpu_without_code_is_found_by_the_plan(cuda, toolkit, gpus, lacking):
    assert unserved(cuda, toolkit, gpus) == lacking


def test_special_code_for_others_leaves_a_gpu_out_where_another_component_serves_it():
    more = '[kernel.all]\nbackend = "cuda"\ndepends = ["torch"]\nsrc = ["b.cu"]\ncuda-capabilities = ["8.0"]'
    assert unserved(["9.0a"], "13.0", ["A100"], more=more) == []
    assert unserved(["9.0"], "13.0", ["A100"], more=more) == ["A100"]


def test_a_component_that_names_nothing_has_what_its_toolkit_compiles():
    one = kernel(cuda='[require]\ngpus = ["T4", "GB10 (DGX Spark)"]').config
    assert list(coverage.unserved(one, cell_of(one, backend=Backend.CUDA, toolkit="13.0"))) == []


def test_a_gpu_of_amd_has_code_of_its_own_alone():
    one = kernel(rocm='rocm-archs = ["gfx90a"]\n[require]\ngpus = ["gfx90a", "MI300X"]').config
    assert [name for name, _ in coverage.unserved(one, cell_of(one, backend=Backend.ROCM, toolkit="7.1"))] == ["MI300X"]


def test_the_plan_says_it_and_the_build_is_refused_unless_it_is_a_quick_one():
    asked = kernel(cuda='cuda-capabilities = ["8.0"]\n[require]\ngpus = ["H100"]')
    one, where = asked.config, cell_of(asked.config, backend=Backend.CUDA, toolkit="13.0")
    notes = [note for note in make(asked, rows(), Scope()).notes if note.rule == "require"]
    assert {note.message for note in notes} >= {"H100 is required, and gets no code of 'cuda-part' with CUDA 13.0"}
    with pytest.raises(BuilderError, match="H100 is required") as refused:
        coverage.require(one, where)
    assert "add '9.0'" in refused.value.help
    coverage.require(one, where, ("8.0",))


def test_check_names_the_entry():
    asked = kernel(cuda='cuda-capabilities = ["8.0"]\n[require]\ngpus = ["A100", "H100"]')
    found = list(cells.required_gpus(asked))
    assert {(problem.code, problem.key) for problem in found} == {("B147", ("require", "gpus", 1))}
