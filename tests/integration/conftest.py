"""What the tests of whole builds share."""

import json
import os

import pytest

from tests.given import kernels, processes
from tests.given.files import edit, write


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """The folder of all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture(scope="session")
def store(shared):
    """A store that the tests of a run share: environments, and objects with the same inputs, are made once."""
    return shared / "store"


@pytest.fixture(scope="session")
def new_store(store):
    """Make stores that have nothing but what the tests of a run share: environments, their locks, uv's cache."""

    def make(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("environments", "locks", "uv"):
            (store / name).mkdir(parents=True, exist_ok=True)
            if not (folder / name).exists():
                (folder / name).symlink_to(store / name)
        return folder

    return make


@pytest.fixture
def tiny(tmp_path):
    """A copy of the kernel for torch."""
    return kernels.copied(kernels.TINY, tmp_path)


@pytest.fixture
def plain(tmp_path):
    """A copy of the kernel without a framework."""
    return kernels.copied(kernels.PLAIN, tmp_path)


@pytest.fixture
def headed(plain):
    """The same, with a header that one of its two sources includes."""
    write(plain, {"csrc/factor.h": "#pragma once\nconstexpr float FACTOR = 2.0f;\n"})
    edit(plain / "csrc/scale.cpp", 'extern "C" int helper', '#include "factor.h"\n\nextern "C" int helper')
    edit(plain / "csrc/scale.cpp", "* factor", "* factor * FACTOR")
    edit(plain / "build.toml", '"csrc/scale.cpp"]', '"csrc/scale.cpp", "csrc/factor.h"]')
    return plain


@pytest.fixture
def builder(store, tmp_path):
    """Run `builder` as a user does, in an empty folder, with the shared store unless another one is given."""

    def run(*arguments, store=store, cwd=tmp_path, **more):
        return processes.builder(*arguments, store=store, cwd=cwd, **more)

    return run


@pytest.fixture
def build(builder):
    """Build one cell of a kernel; return its result, and what the user read."""

    def run(kernel, *more, options=(), check=0, **how):
        done = builder("build", kernel, "--json", *options, *more, check=check, **how)
        (result,) = json.loads(done.stdout)
        return result, done.stderr

    return run
