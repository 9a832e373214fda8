"""Quick builds: for which GPUs, and what of a full build these run."""

import pytest

from builder.config import Backend, Version
from builder.errors import BuilderError, NotHereError
from builder.matrix import architectures, coverage
from tests.given.cells import cell_of
from tests.given.kernels import of_text

NEWEST = Version("13.0")


@pytest.mark.parametrize(
    ("requested", "toolkit", "only", "compiled", "lost"),
    [
        pytest.param(None, "13.0", ("9.0",), ("9.0",), (), id="what is named"),
        pytest.param(None, "13.0", ("9.0a",), ("9.0a",), (), id="as it is named, where the kernel leaves it open"),
        pytest.param(None, "13.0", ("8.0", "9.0+PTX"), ("8.0", "9.0+PTX"), (), id="with PTX"),
        pytest.param(None, "13.0", ("9.0", "9.0+PTX"), ("9.0+PTX",), (), id="PTX has the code, too"),
        pytest.param(None, "13.0", ("10.3",), ("10.0",), (), id="a later GPU of a major version"),
        pytest.param(None, "12.6", ("10.0",), (), ("10.0",), id="a GPU that the toolkit does not know"),
        pytest.param(None, "13.0", ("19.0",), (), ("19.0",), id="one that no toolkit knows, in spite of PTX"),
        pytest.param(("8.0", "9.0a"), "13.0", ("9.0",), ("9.0a",), (), id="the special code of a GPU"),
        pytest.param(("8.0", "9.0a"), "13.0", ("8.9",), ("8.0",), (), id="older code that runs"),
        pytest.param(("8.0", "9.0a"), "13.0", ("9.0a", "10.0"), ("9.0a",), ("10.0",), id="one of two"),
        pytest.param(("8.0", "9.0a"), "13.0", ("7.5",), (), ("7.5",), id="a GPU before all that the kernel names"),
        pytest.param(("9.0",), "13.0", ("9.0a",), ("9.0",), (), id="the kernel has no special code"),
        pytest.param(("9.0a",), "13.0", ("10.0",), (), ("10.0",), id="special code runs nowhere else"),
        pytest.param(("10.0f",), "13.0", ("10.3",), ("10.0f",), (), id="code of a family"),
        pytest.param(("8.0+PTX",), "13.0", ("9.0",), ("8.0+PTX",), (), id="PTX for a later major version"),
    ],
)  # fmt: skip
def test_a_quick_build_compiles_what_its_gpus_run_of_the_full_one(requested, toolkit, only, compiled, lost):
    found = architectures.cuda(requested, Version(toolkit), only)
    assert found == architectures.Architectures(compiled=compiled, lost=lost)


@pytest.mark.parametrize("requested", [None, ("8.0", "9.0a"), ("8.0+PTX",), ("7.5", "8.0", "8.9", "9.0")], ids=str)
def test_it_compiles_nothing_that_the_full_build_of_a_kernel_with_a_list_has_not(requested):
    full = architectures.cuda(requested, NEWEST).compiled
    for gpu in ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"):
        assert set(architectures.cuda(requested, NEWEST, (gpu,)).compiled) <= set(full)


def test_of_rocm_it_compiles_what_is_named_and_nothing_like_it():
    found = architectures.rocm(("gfx90a", "gfx942"), ("gfx942", "gfx1100"))
    assert found == architectures.Architectures(compiled=("gfx942",), lost=("gfx1100",))
    assert architectures.rocm(None, ("gfx1151",)).lost == ("gfx1151",)


def test_architectures_are_read_in_any_order_and_once():
    assert architectures.parse(" 10.0f,9.0a, 8.0,9.0a") == architectures.of(Backend.CUDA, ("8.0", "9.0a", "10.0f"))
    assert architectures.parse("gfx942").backend is Backend.ROCM
    assert str(architectures.parse("9.0,8.0")) == "8.0,9.0"


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        pytest.param("", "'' is not an architecture of a GPU", "write those of CUDA as in '9.0a'", id="nothing"),
        pytest.param("9.0,", "'' is not an architecture", "with commas between them", id="nothing after a comma"),
        pytest.param("sm_90", "'sm_90' is not an architecture", "write '9.0'", id="the spelling of nvcc"),
        pytest.param("MI300", "'MI300' is not an architecture", "gfx942", id="a name of a product"),
        pytest.param("942", "'942' is not an architecture", "", id="a number"),
        pytest.param("9.0;8.0", "'9.0;8.0' is not an architecture", "commas", id="another separator"),
        pytest.param("9.0 -DX", "'9.0 -DX' is not an architecture", "", id="more than an architecture"),
        pytest.param(f"{'9' * 30}.0", "is not an architecture", "", id="a very long number"),
        pytest.param("9.0,gfx942", "9.0 of CUDA and gfx942 of ROCm are not for one build", "its own", id="both"),
        pytest.param("native,9.0", "'native' stands alone", "not both", id="a name beside native"),
    ],
)
def test_what_is_no_list_of_architectures_is_refused(text, message, remedy):
    with pytest.raises(BuilderError) as refused:
        architectures.parse(text)
    assert message in refused.value.message
    assert remedy in refused.value.help


@pytest.mark.parametrize(
    ("backend", "noarch", "said"),
    [
        (Backend.CPU, False, "9.0: what is built for the CPU is told no architectures"),
        (Backend.CUDA, True, "9.0: what is built for CUDA is pure Python"),
        (Backend.ROCM, False, "9.0 is of CUDA, and the cell of ROCm"),
    ],
)
def test_a_cell_that_has_no_such_code_is_refused(backend, noarch, said):
    with pytest.raises(BuilderError, match=said):
        architectures.require(("9.0",), backend, noarch=noarch)
    architectures.require((), backend, noarch=noarch)
    architectures.require(("9.0",), Backend.CUDA, noarch=False)


def config(cuda=""):
    text = (
        '[general]\nname = "case"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cuda"]\n[torch]\n'
        '[kernel.open]\nbackend = "cuda"\ndepends = []\nsrc = ["a.cu"]\n'
        f'[kernel.named]\nbackend = "cuda"\ndepends = []\nsrc = ["a.cu"]\n{cuda}\n'
    )
    return of_text(text).config


def test_a_cell_with_a_component_that_no_gpu_runs_is_refused_with_what_a_full_build_has():
    one = config('cuda-capabilities = ["8.0", "9.0a"]')
    with pytest.raises(BuilderError, match=r"component 'named' has no code for 12\.0 with CUDA 13\.0\n") as refused:
        coverage.require(one, cell_of(one, toolkit="13.0"), ("12.0",))
    assert refused.value.help == "'named' has 8.0, 9.0a"


def test_a_toolkit_that_does_not_know_the_gpu_is_no_fault_of_the_kernel():
    one = config()
    with pytest.raises(NotHereError, match=r"cannot have code for 10\.0: CUDA 12\.6 does not compile it") as refused:
        coverage.require(one, cell_of(one, toolkit="12.6"), ("10.0",))
    assert refused.value.help.startswith("CUDA 12.6 compiles 7.0, 7.2")
    coverage.require(one, cell_of(one, toolkit="12.6"), ("9.0", "10.0"))


def test_what_one_of_several_gpus_lacks_is_named_and_built_without():
    one = config('cuda-capabilities = ["8.0"]')
    coverage.require(one, cell_of(one, toolkit="13.0"), ("8.0", "9.0"))
    said = [covered.message for covered in coverage.of(one, cell_of(one, toolkit="13.0"), ("8.0", "9.0"))]
    assert said == [None, "component 'named' has no code for 9.0 with CUDA 13.0"]
