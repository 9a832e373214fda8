"""A large site is made by several processes: the same bytes, and the same words about what is wrong."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from builder.config import Version
from builder.errors import ToolError
from builder.matrix.variant import Variant
from builder.publish import index
from builder.publish.index import workers
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError
from tests.given.files import tree
from tests.wheels import make

VARIANTS = (
    "torch212-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cu130-x86_64-linux",
    "torch-stable-abi210-cpu-x86_64-linux",
)
UNKNOWN = "torch299-cxx11-cpu-x86_64-linux"
"""A torch that the matrix does not know: the wheel of one kernel adds an index that those of others are in."""
UPLOADED = "2026-08-01T00:00:00Z"


@pytest.fixture
def dist(dist):
    for kernel in ("relu", "silu-and-mul", "norm"):
        for variant in (*VARIANTS, *((UNKNOWN,) if kernel == "norm" else ())):
            make(dist, kernel, Variant.parse(variant))
    return dist


def settings(dist):
    name = next(dist.glob("relu-*.whl")).name
    return index.Settings(base_url="https://example.org", with_variants=True, uploaded={name: UPLOADED})


def write(dist, output, *, processes):
    paths = sorted(dist.glob("*.whl"))
    parts = index.parts(paths, settings(dist), processes=processes)
    return index.write(index.assemble(parts, settings(dist)), output)


def test_several_processes_write_the_site_that_one_writes(dist, tmp_path):
    one, several = tmp_path / "one", tmp_path / "several"
    assert write(dist, one, processes=1) == write(dist, several, processes=2) == 10
    assert tree(one) == tree(several)
    made = index.build(kernel_wheel.read_all(dist.glob("*.whl")), settings(dist))
    assert tree(one).keys() == made.keys()
    assert UPLOADED in (one / "simple/relu/index.json").read_text()
    assert (one / "for/torch299-cpu/simple/relu/index.html").is_file()
    assert write(dist, several, processes=2) == 0
    assert tree(one) == tree(several)


def test_what_is_wrong_is_said_in_the_same_words_by_several_processes(dist):
    damaged = [next(dist.glob(f"{name}-*.whl")) for name in ("norm", "relu")]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-100])
    (dist / "no.whl").write_bytes(b"")
    said = []
    for processes in (1, 2):
        with pytest.raises(WheelError) as error:
            index.parts(sorted(dist.glob("*.whl")), index.Settings(), processes=processes)
        said.append(str(error.value))
    assert said[0] == said[1]
    with pytest.raises(WheelError) as error:
        kernel_wheel.read_all(dist.glob("*.whl"))
    assert said[0] == str(error.value)
    assert all(path.name in said[0] for path in (*damaged, dist / "no.whl"))


def ends_its_process(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_ended_is_an_error_and_not_a_traceback():
    with pytest.raises(ToolError, match="was ended by something else"):
        workers.each(ends_its_process, [1], processes=2)


SLOW = """
import os, sys, time
from pathlib import Path
from builder.publish.index import workers

def slow(number):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(1)

if __name__ == "__main__":
    workers.each(slow, range(1000), processes=2)
"""


def test_ctrl_c_ends_all_processes_at_once(tmp_path):
    seen, program = tmp_path / "seen", tmp_path / "slow.py"
    seen.mkdir()
    program.write_text(SLOW)
    started = subprocess.Popen(
        [sys.executable, program, seen],
        start_new_session=True,  # a terminal sends Ctrl-C to all processes of a group
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
    )
    while len(list(seen.iterdir())) < 2:
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)
    said = started.communicate(timeout=30)[1]
    assert started.returncode in (130, -signal.SIGINT)
    assert said.count("Traceback") == 1, said  # of the first process alone, which is no command here
    for path in seen.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name), 0)


def test_a_version_goes_to_another_process():
    version = Version("2.13")
    assert pickle.loads(pickle.dumps(version)) == copy.copy(version) == version
