"""The limits of functions in [require]: a wheel whose kernel takes more than it may is refused, with what did it."""

import functools
import subprocess

import pytest

from builder import audit
from builder.wheel.archive import Wheel
from tests.audit import nvidia
from tests.given.device_code import LOAD, STORE, compiled, fatbin, image

OPTIONS = "-maxrregcount 32 -arch sm_90 -m 64"
SPILL = {"registers": 32, "stack": 8, "moves": [(STORE, 4), (LOAD, 8)], "limit": 32}
PLAIN = {"registers": 40}


@pytest.fixture
def judge(make_wheel, compiler):
    """Return the findings of a wheel with functions for 9.0, whose kernel has these limits."""
    cuda = functools.partial(make_wheel, label="torch213.cxx11.cu130", backend="cuda", archs=["9.0"])

    def judge(budgets, **function):
        code = fatbin(image(2, 90, content=compiled(**function))) if function else fatbin(image(2, 90))
        path = cuda(library=compiler.library() + code, metadata={"require": {"functions": budgets}})
        return [each for each in audit.run(Wheel.read(path)).findings if each.rule == "functions"]

    return judge


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        pytest.param(
            {**SPILL, "options": OPTIONS},
            "'-maxrregcount 32' of its ptxas allows 32 registers: take it out of 'cuda-flags', or raise it",
            id="an option of ptxas",
        ),
        pytest.param(
            {**SPILL, "options": "-arch sm_90 -m 64", "threads": 512},
            "its __launch_bounds__ of 512 threads allows 32 registers: ask for fewer threads, or fewer blocks at once",
            id="launch bounds",
        ),
        pytest.param(
            SPILL,
            "'-maxrregcount=32' allows it no more: take it out of 'cuda-flags', or raise it",
            id="a compiler that tells nothing",
        ),
        pytest.param(
            {**SPILL, "limit": 255},
            "the GPU has no more registers for a thread: give each thread less to do, such as a smaller tile",
            id="the GPU",
        ),
    ],
)
def test_a_spill_is_refused_with_its_name_both_figures_and_what_did_it(judge, function, remedy):
    (found,) = judge([{"no-spills": True}], **function)
    assert (found.symbol, found.severity, found.remedy) == ("tile(float*)", "error", remedy)
    assert found.why == (
        "for 9.0 it spills registers, 4 bytes stored, 8 loaded, and may spill none; it has 32 registers"
    )


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ({"max-registers": 39}, "for 9.0 a thread takes 40 registers, and may take 39"),
        ({"max-shared-memory": 2000}, "for 9.0 a block takes 70,000 bytes of shared memory, and may take 2,000"),
        (
            {"min-occupancy": 100},
            "for 9.0 it keeps 75 % of its waves running, and must keep 100 %: 40 registers, 70,000 bytes of",
        ),
    ],
)
def test_each_limit_is_compared_with_the_figure_of_the_function(judge, budget, why):
    (found,) = judge([budget], **PLAIN, shared=70_000, threads=512)
    assert found.why.startswith(why)


@pytest.mark.parametrize(
    "budgets",
    [
        pytest.param([{"max-registers": 40, "max-shared-memory": 64, "min-occupancy": 75}], id="the very figures"),
        pytest.param([{"max-registers": 8, "names": ["other*"]}], id="another function"),
        pytest.param([{"max-registers": 8, "gpus": ["8.6", "MI300X"]}], id="other GPUs"),
        pytest.param([{"max-registers": 8}, {"names": ["tile(*"], "max-registers": 64}], id="a later table"),
        pytest.param([{"no-spills": True}, {"names": ["_Z4tile*"], "no-spills": False}], id="a spill that may be"),
    ],
)
def test_a_function_within_the_last_limits_that_name_it_is_no_finding(judge, budgets):
    assert judge(budgets, **PLAIN) == []
    if "no-spills" in budgets[-1]:
        assert judge(budgets, **SPILL) == []
        assert judge(budgets[:1], **SPILL)


def test_code_that_a_named_gpu_runs_is_limited(judge):
    assert len(judge([{"max-registers": 8, "gpus": ["H100"], "names": ["tile(float[*])"]}], **PLAIN)) == 1


def test_spills_that_an_old_ptxas_does_not_tell_are_a_warning(judge):
    (found,) = judge([{"no-spills": True}], registers=32, stack=8, version=124)
    assert found.severity == "warning"
    assert "a thread has 8 bytes of its own" in found.why


def test_functions_that_cannot_be_read_are_a_finding(judge):
    (found,) = judge([{"no-spills": True}])
    assert "they cannot be read: " in found.why


@pytest.mark.parametrize("budgets", [7, {"names": 1}, [{"max-registers": "many"}], [{"gpus": ["no such GPU"]}], ["a"]])
def test_limits_that_nobody_knows_are_a_finding(judge, budgets):
    (found,) = judge(budgets, **PLAIN)
    assert (found.file, found.symbol) == ("demo/metadata.json", "require.functions")


def test_without_limits_no_function_is_read(judge):
    assert judge([]) == []


SPILLING = r"""
namespace my { __global__ void __launch_bounds__(1024) heavy(float *a, int n) {
  float r[96];
#pragma unroll
  for (int i = 0; i < 96; i++) r[i] = a[i * n + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; i++) a[i * n + threadIdx.x] = r[i] * r[(i + 7) % 96];
} }
"""


@pytest.mark.cuda
@pytest.mark.parametrize(
    "case",
    [
        pytest.param((lambda text: text, (), "its __launch_bounds__ of 1024 threads allows 64 registers"), id="bounds"),
        pytest.param(
            (
                lambda text: text.replace("__launch_bounds__(1024)", ""),
                ("-maxrregcount=40",),
                "'-maxrregcount 40' of its ptxas allows 40 registers",
            ),
            id="flag",
        ),
        pytest.param(
            (
                lambda text: text.replace("__launch_bounds__(1024)", "").replace("96", "400"),
                (),
                "the GPU has no more registers for a thread",
            ),
            id="larger tile",
        ),
    ],
)
def test_a_planted_spill_of_nvcc_is_refused_with_what_did_it(make_wheel, compiler, tmp_path, case):
    edit, flags, cause = case
    (tmp_path / "k.cu").write_text(edit(SPILLING))
    command = (nvidia.nvcc(), "-fatbin", "-arch=sm_90", *flags, "-Xptxas", "-v", "k.cu", "-o", "k.fatbin")
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    path = make_wheel(
        library=compiler.library() + (tmp_path / "k.fatbin").read_bytes(),
        label="torch213.cxx11.cu130",
        backend="cuda",
        archs=["9.0"],
        metadata={"require": {"functions": [{"no-spills": True}]}},
    )
    (found,) = [each for each in audit.run(Wheel.read(path)).findings if each.rule == "functions"]
    assert found.symbol == "my::heavy(float*, int)"
    assert found.remedy.startswith(cause)
    stores = next(
        word for line in said.splitlines() if "spill stores" in line for word in line.split(", ")[1:2]
    ).split()[0]
    assert f"{int(stores):,} bytes stored" in found.why
