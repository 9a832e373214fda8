"""The table [require]: the GPUs that wheels must have code for, and the limits of functions."""

import pytest

from builder.config import Backend, parse
from builder.config.gpus import known
from builder.config.update import rewrite
from builder.metadata import KernelMetadata
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

CUDA = '[torch]\n[kernel.a]\nbackend = "cuda"\ndepends = []\nsrc = ["a.cu"]\n'
REQUIRE = CUDA + '[require]\ngpus = ["H100", "8.6", "GB200"] # ours\n'


def test_the_table_is_read_written_and_kept_by_update():
    config = five(REQUIRE)
    assert [name.gpu.arch for name in config.required_gpus(Backend.CUDA)] == ["9.0", "8.6", "10.0"]
    assert config.required_gpus(Backend.ROCM) == ()
    assert parse(source(dump(config))) == config
    assert rewrite(source(GENERAL + REQUIRE)) == GENERAL + REQUIRE


@pytest.mark.parametrize(
    ("gpus", "message", "remedy"),
    [
        ('["H10O"]', "'H10O' is not a GPU that is known", "did you mean 'H100'?"),
        ('["gfx942"]', "'gfx942' is a GPU of ROCm, for which the kernel has no component", None),
    ],
)
def test_a_gpu_that_no_wheel_is_for_is_refused_at_its_place(gpus, message, remedy):
    (problem,) = problems_of(GENERAL + CUDA + f"[require]\ngpus = {gpus}\n")
    assert (problem.code, problem.message, problem.key) == ("B065", message, ("require", "gpus", 0))
    assert remedy is None or problem.help == remedy


def test_a_gpu_has_the_last_word_of_its_products_as_a_name():
    names = {name for gpu in known() for name in gpu.names}
    assert "Instinct MI300X" in names
    rocm = (
        GENERAL + '[torch]\n[kernel.a]\nbackend = "rocm"\ndepends = []\nsrc = ["a.hip"]\n[require]\ngpus = ["MI300X"]\n'
    )
    assert parse(source(rocm)).required_gpus(Backend.ROCM)[0].gpu.arch == "gfx942"


LIMITS = """[require]
max-registers = 128
[[require.functions]]
names = ["my::*"]
gpus = ["H100"]
no-spills = true
[[require.functions]]
gpus = ["8.6"]
min-occupancy = 50
"""


def test_limits_of_functions_are_read_and_go_into_the_metadata_of_wheels():
    config = five(CUDA + LIMITS)
    assert parse(source(dump(config))) == config
    metadata = KernelMetadata.of(config, Backend.CUDA, ops="_a", extensions={})
    assert metadata.table["require"]["functions"] == [
        {"names": ["*"], "max-registers": 128},
        {"names": ["my::*"], "gpus": ["H100"], "no-spills": True},
        {"names": ["*"], "gpus": ["8.6"], "min-occupancy": 50},
    ]
    assert KernelMetadata.read(metadata.text.encode()).function_budgets == config.function_budgets(Backend.CUDA)
    assert config.function_budgets(Backend.CPU) == ()


@pytest.mark.parametrize(
    ("limits", "code", "key"),
    [
        ("max-registers = 0", "B012", ("require", "max-registers")),
        ("min-occupancy = 101", "B012", ("require", "min-occupancy")),
        ('[[require.functions]]\ngpus = ["gfx942"]', "B065", ("require", "functions", 0, "gpus", 0)),
        ("[[require.functions]]\nmax-registres = 1", "B010", ("require", "functions", 0, "max-registres")),
    ],
)
def test_a_limit_that_nothing_can_keep_is_refused_at_its_place(limits, code, key):
    (problem,) = problems_of(GENERAL + CUDA + f"[require]\n{limits}\n")
    assert (problem.code, problem.key) == (code, key)
