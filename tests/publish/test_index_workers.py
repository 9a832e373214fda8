"""A large site is made by several processes: the same bytes, and the same words about what is wrong."""

import copy
import os
import pickle
import signal

import pytest

from builder.config import Version
from builder.errors import BuilderError, NothingToDoError, ToolError
from builder.matrix.variant import Variant
from builder.publish import index
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError
from tests.publish.test_index import tree
from tests.wheels import make

VARIANTS = (
    "torch212-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cu130-x86_64-linux",
    "torch-stable-abi210-cpu-x86_64-linux",
)
UNKNOWN = "torch299-cxx11-cpu-x86_64-linux"
"""A torch that the matrix does not know: the wheel of one kernel adds an index that those of others are in."""


@pytest.fixture
def dist(tmp_path):
    folder = tmp_path / "dist"
    folder.mkdir()
    for kernel in ("relu", "silu-and-mul", "norm"):
        for variant in (*VARIANTS, *((UNKNOWN,) if kernel == "norm" else ())):
            make(folder, kernel, Variant.parse(variant))
    return folder


def write(dist, output, *, processes):
    paths = sorted(dist.glob("*.whl"))
    settings = index.settings(paths, base_url="https://example.org", with_variants=True)
    with index.workers(len(paths), processes=processes) as each:
        return index.write(index.assemble(index.parts(paths, settings, each=each), settings), output, each=each)


def test_several_processes_write_the_site_that_one_writes(dist, tmp_path):
    one, several = tmp_path / "one", tmp_path / "several"
    assert write(dist, one, processes=1) == write(dist, several, processes=2) == 10
    assert tree(one) == tree(several)
    made = index.build(kernel_wheel.read_all(dist.glob("*.whl")), base_url="https://example.org", with_variants=True)
    assert tree(one).keys() == made.keys()
    assert (one / "for/torch299-cpu/simple/relu/index.html").is_file()
    assert write(dist, several, processes=2) == 0
    assert tree(one) == tree(several)


def test_a_site_has_the_indexes_that_its_whole_wheels_say_whatever_it_looks_at_first(dist):
    paths = sorted(dist.glob("*.whl"))
    settings = index.settings([*paths, dist / "no.whl", dist / "a-1+b-c-d-e.whl"], base_url=None, with_variants=False)
    assert ("2.99", "cpu") in {(str(torch), compute) for torch, compute in settings.environments}


def test_what_is_wrong_with_wheels_of_several_kernels_is_said_at_once(dist, tmp_path):
    damaged = [next(dist.glob(f"{name}-*.whl")) for name in ("norm", "relu")]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(WheelError) as error:
        write(dist, tmp_path / "site", processes=2)
    assert all(path.name in str(error.value) for path in damaged)
    assert not (tmp_path / "site").exists()


def test_a_process_tells_what_it_finds_changed_and_what_it_cannot_write(dist, tmp_path):
    site = tmp_path / "site"
    write(dist, site, processes=2)
    make(dist, "relu", Variant.parse(VARIANTS[0]), content="answer = 43\n")
    before = tree(site)
    with pytest.raises(NothingToDoError, match=r"already has other files named files/relu"):
        write(dist, site, processes=2)
    assert tree(site) == before
    page = index.Page(content=tmp_path / "gone", fixed=False)
    with index.workers(1, processes=2) as each, pytest.raises(BuilderError, match=r"cannot write .* No such file"):
        index.write({"page": page}, tmp_path / "other", each=each)


def ends_its_process(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_ended_is_an_error_and_not_a_traceback():
    with pytest.raises(ToolError, match="was ended by something else"), index.workers(1, processes=2) as each:
        list(each(ends_its_process, [1]))


def test_few_wheels_start_no_process():
    with index.workers(1) as each:
        assert each is map


def test_a_version_goes_to_another_process():
    version = Version("2.13")
    assert pickle.loads(pickle.dumps(version)) == copy.copy(version) == version
