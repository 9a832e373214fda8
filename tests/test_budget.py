import os
import threading
from pathlib import Path

import pytest

from builder import matrix
from builder.config import Backend, Framework, Version
from builder.engine import budget
from builder.engine.budget import Budget, GiB, Jobserver, Machine


def cell(backend=Backend.CPU, *, stable=None):
    return matrix.Cell(
        variant=f"v-{backend}",
        framework=Framework.TORCH,
        backend=backend,
        system="x86_64-linux",
        torch=Version("2.13"),
        toolkit=None,
        compute="cpu",
        stable_abi=stable,
    )


def test_a_cell_gets_every_core_when_memory_allows():
    with Budget(Machine(cores=8, memory=100 * GiB)).admit(cell()) as jobs:
        assert jobs == 8


def test_memory_limits_how_many_compilers_a_cell_runs():
    with Budget(Machine(cores=8, memory=6 * GiB)).admit(cell(Backend.CUDA)) as jobs:
        assert jobs == 2


def test_a_cell_that_is_too_large_runs_one_compiler_and_alone():
    limited = Budget(Machine(cores=8, memory=GiB))
    with limited.admit(cell(Backend.CUDA)) as jobs:
        assert jobs == 1
        assert not _admitted(limited, cell(stable=Version("2.10")))


def test_a_cell_waits_until_there_is_memory():
    limited = Budget(Machine(cores=4, memory=6 * GiB))
    with limited.admit(cell(Backend.CUDA)):
        assert not _admitted(limited, cell(Backend.CUDA))
    assert _admitted(limited, cell(Backend.CUDA))


def _admitted(limited, wanted):
    """Whether a cell gets in within a moment; if not, it is let in at the end of the test."""
    inside = threading.Event()

    def enter():
        with limited.admit(wanted):
            inside.set()

    threading.Thread(target=enter, daemon=True).start()
    return inside.wait(0.2)


def test_what_a_cell_took_is_given_back_when_it_fails():
    limited = Budget(Machine(cores=4, memory=3 * GiB))
    with pytest.raises(RuntimeError), limited.admit(cell(Backend.CUDA)):
        raise RuntimeError
    assert _admitted(limited, cell(Backend.CUDA))


def test_acgroup_limits_the_memory(tmp_path):
    (tmp_path / "group/inner").mkdir(parents=True)
    (tmp_path / "group/memory.max").write_text("1000\n")
    (tmp_path / "group/inner/memory.max").write_text("max\n")
    member = tmp_path / "cgroup"
    member.write_text("0::/group/inner\n")
    assert list(budget.cgroup_limits(tmp_path, member)) == [1000]


def test_a_cgroup_of_version_1_limits_the_memory(tmp_path):
    (tmp_path / "memory/group").mkdir(parents=True)
    (tmp_path / "memory/memory.limit_in_bytes").write_text("5000\n")
    (tmp_path / "memory/group/memory.limit_in_bytes").write_text("2000\n")
    member = tmp_path / "cgroup"
    member.write_text("8:pids:/\n4:cpu,memory:/group\n0::/\n")
    assert list(budget.cgroup_limits(tmp_path, member)) == [2000, 5000]


def test_what_an_earlier_build_took_is_what_the_next_is_admitted_by():
    with Budget(Machine(cores=8, memory=4 * GiB)).admit(cell(Backend.CUDA), learned=GiB // 2) as jobs:
        assert jobs == 8


def test_a_machine_without_cgroups_has_no_limit(tmp_path):
    assert list(budget.cgroup_limits(tmp_path, tmp_path / "absent")) == []


def test_this_machine_has_cores_and_memory():
    found = budget.machine()
    assert found.cores >= 1
    assert found.memory > 0


def test_a_jobserver_has_a_token_for_each_core_but_the_builds_own(tmp_path):
    server = Jobserver(tmp_path, cores=4)
    descriptor = os.open(server.path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert os.read(descriptor, 10) == b"+++"
        assert f"fifo:{server.path}" in server.variables["MAKEFLAGS"]
    finally:
        os.close(descriptor)
        server.close()
    assert not Path(server.path).exists()
