"""The table [require]: the GPUs that wheels must have code for."""

import pytest

from builder.config import Backend, parse
from builder.config.gpus import known
from builder.config.update import rewrite
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
