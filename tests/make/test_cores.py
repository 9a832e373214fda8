import pytest

from builder.make.workplace import core_variables, nvcc_threads
from tests.given.jobs import job

SERVER = {"MAKEFLAGS": " -j8 --jobserver-auth=fifo:/x"}


def test_ninja_is_left_to_the_jobserver_where_there_is_one():
    assert core_variables(job(cores=8, jobserver=SERVER)) == SERVER
    assert core_variables(job(cores=3)) == {"CMAKE_BUILD_PARALLEL_LEVEL": "3"}
    assert core_variables(job()) == {}


@pytest.mark.parametrize(
    ("nvcc", "sources", "jobserver", "threads"),
    [
        ("13.0.88", 1, SERVER, 8),
        ("13.0.88", 100, SERVER, 8),
        ("12.9.86", 1, SERVER, 8),
        ("12.9.86", 3, SERVER, 2),
        ("12.9.86", 100, SERVER, 1),
        ("13.0.88", 3, {}, 2),
    ],
)
def test_nvcc_compiles_as_many_architectures_at_once_as_there_are_cores_for(nvcc, sources, jobserver, threads):
    assert (
        nvcc_threads(job([f"{number}.cu" for number in range(sources)], nvcc=nvcc, cores=8, jobserver=jobserver))
        == threads
    )


def test_an_nvcc_that_knows_a_jobserver_is_told_to_ask_it():
    assert core_variables(job(nvcc="13.0.88", cores=8, jobserver=SERVER))["NVCC_APPEND_FLAGS"] == "--jobserver"
    assert "NVCC_APPEND_FLAGS" not in core_variables(job(nvcc="12.9.86", cores=8, jobserver=SERVER))
    assert "NVCC_APPEND_FLAGS" not in core_variables(job(nvcc="13.0.88", cores=8))


def test_without_a_number_of_cores_nvcc_compiles_one_architecture_after_the_other():
    assert nvcc_threads(job(["a.cu"], nvcc="13.0.88")) == 1
