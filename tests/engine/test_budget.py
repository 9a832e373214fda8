import contextlib
import os
import re
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from builder import matrix
from builder.config import Backend, Framework, Version
from builder.engine.budget import Budget, GiB, Jobserver
from builder.plan import ask

CPU = matrix.Cell(
    variant="v-cpu",
    framework=Framework.TORCH,
    backend=Backend.CPU,
    system="x86_64-linux",
    torch=Version("2.13"),
    toolkit=None,
    compute="cpu",
)
CUDA = replace(CPU, variant="v-cuda", backend=Backend.CUDA)


def test_a_cell_gets_every_core_when_memory_allows():
    with Budget(cores=8, memory=100 * GiB).admit(CPU) as jobs:
        assert jobs == 8


def test_memory_limits_how_many_compilers_a_cell_runs():
    with Budget(cores=8, memory=6 * GiB).admit(CUDA) as jobs:
        assert jobs == 2


def test_a_cell_that_is_too_large_runs_one_compiler_and_alone():
    limited = Budget(cores=8, memory=GiB)
    with limited.admit(CUDA) as jobs:
        assert jobs == 1
        assert not _admitted(limited, replace(CPU, stable_abi=Version("2.10")))


def test_a_cell_waits_until_there_is_memory():
    limited = Budget(cores=4, memory=6 * GiB)
    with limited.admit(CUDA):
        assert not _admitted(limited, CUDA)
    assert _admitted(limited, CUDA)


def _admitted(limited, wanted):
    """Whether a cell gets in within a moment; if not, it is let in at the end of the test."""
    inside = threading.Event()

    def enter():
        with limited.admit(wanted):
            inside.set()

    threading.Thread(target=enter, daemon=True).start()
    return inside.wait(0.2)


def test_what_a_cell_took_is_given_back_when_it_fails():
    limited = Budget(cores=4, memory=3 * GiB)
    with pytest.raises(RuntimeError), limited.admit(CUDA):
        raise RuntimeError
    assert _admitted(limited, CUDA)


def test_acgroup_limits_the_memory(tmp_path):
    (tmp_path / "group/inner").mkdir(parents=True)
    (tmp_path / "group/memory.max").write_text("1000\n")
    (tmp_path / "group/inner/memory.max").write_text("max\n")
    member = tmp_path / "cgroup"
    member.write_text("0::/group/inner\n")
    assert list(ask.cgroup_limits(tmp_path, member)) == [1000]


def test_a_cgroup_of_version_1_limits_the_memory(tmp_path):
    (tmp_path / "memory/group").mkdir(parents=True)
    (tmp_path / "memory/memory.limit_in_bytes").write_text("5000\n")
    (tmp_path / "memory/group/memory.limit_in_bytes").write_text("2000\n")
    member = tmp_path / "cgroup"
    member.write_text("8:pids:/\n4:cpu,memory:/group\n0::/\n")
    assert list(ask.cgroup_limits(tmp_path, member)) == [2000, 5000]


def test_what_an_earlier_build_took_is_what_the_next_is_admitted_by():
    with Budget(cores=8, memory=4 * GiB).admit(CUDA, learned=GiB // 2) as jobs:
        assert jobs == 8


def test_a_machine_without_cgroups_has_no_limit(tmp_path):
    assert list(ask.cgroup_limits(tmp_path, tmp_path / "absent")) == []


def test_this_machine_has_cores_and_memory():
    assert ask.own_cores() >= 1
    assert ask.own_memory() > 0


@pytest.fixture
def server(tmp_path):
    made = Jobserver(tmp_path, cores=4)
    yield made
    made.close()
    assert not Path(made.path).exists()


def left(server, *, take=b""):
    """Return the tokens that a compiler would find; what it does not `take` is put back."""
    descriptor = os.open(server.path, os.O_RDWR | os.O_NONBLOCK)
    try:
        found = os.read(descriptor, 100)
        os.write(descriptor, found.removeprefix(take))
    except BlockingIOError:
        return 0
    finally:
        os.close(descriptor)
    return len(found)


def test_a_jobserver_has_a_token_for_each_core_and_a_cell_holds_one_of_them(server):
    assert f"fifo:{server.path}" in server.variables["MAKEFLAGS"]
    assert left(server) == 4
    with server.hold(1) as one, server.hold(2) as two:
        assert (one, two) == (True, True)
        assert left(server) == 1
    assert left(server) == 4


def test_a_store_with_a_space_in_its_path_has_a_jobserver_that_tools_can_open(tmp_path):
    """The flags are words with spaces between them, and nothing quotes one."""
    folder = tmp_path / "a store"
    folder.mkdir()
    server = Jobserver(folder, cores=2)
    (named,) = re.findall(r"--jobserver-auth=fifo:(\S+)", server.variables["MAKEFLAGS"])
    assert stat.S_ISFIFO(Path(named).stat().st_mode)
    assert left(server) == 2
    server.close()
    assert not Path(named).parent.exists()
    assert folder.is_dir()


def test_a_cell_waits_for_a_token_until_it_is_told_to_give_up(server):
    answers = iter([False, False, True])
    with server.hold(4), server.hold(1, give_up=lambda: next(answers)) as had:
        assert not had
    assert left(server) == 4


def test_a_cell_gets_the_token_of_one_that_ended(server):
    with contextlib.ExitStack() as other:
        other.enter_context(server.hold(4))
        threading.Timer(0.05, other.close).start()
        with server.hold(2) as had:
            assert had
    assert left(server) == 4


def test_one_process_may_run_with_the_compilers_where_a_core_is_free(server):
    with server.spare_core() as one, server.spare_core() as two:
        assert (one, two) == (True, False)
        assert left(server) == 4
    with server.spare_core() as again, server.spare_core(allowed=False) as refused:
        assert (again, refused) == (True, False)
    with server.hold(4), server.spare_core() as late:
        assert not late
    assert left(server) == 4


def test_tokens_of_compilers_that_were_killed_come_back(server):
    with server.hold(1):
        left(server, take=b"+++")
    assert left(server) == 1
    with server.hold(3) as had:
        assert had
        assert left(server) == 1


def test_cells_that_share_the_cores_take_the_memory_of_the_largest_compilers_alone():
    limited = Budget(cores=4, memory=12 * GiB)
    with limited.admit(CUDA) as jobs, limited.admit(CPU) as other:
        assert (jobs, other) == (4, 4)
        assert _admitted(limited, CUDA)


def test_what_runs_alone_has_nothing_beside_it():
    limited = Budget(cores=4, memory=100 * GiB)
    with limited.admit(CPU, alone=True) as jobs:
        assert jobs == 1
        assert not _admitted(limited, CPU)
