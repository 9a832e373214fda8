"""A build in a small cgroup: admitted by memory, and when it runs out all the same, built again alone."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL, linux
from tests.given.processes import builder

LIMIT = 560 << 20
HOG = """
#define A 1,2,3,4,5,6,7,8,
#define B A A A A A A A A A A
#define C B B B B B B B B B B
#define D C C C C C C C C C C
#define E D D D D D D D D D D
extern const int hog_{name}[];
const int hog_{name}[] = {{ E E E E E E E E E E E E E E E E E E E E E E E E E E 0 }};
"""
"""A file that the compiler takes 310 MB for."""


def cgroup():
    """Make a memory cgroup below one that may be written; None where that is not allowed."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        folder = Path(parent) / f"builder-test-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(LIMIT))
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            continue
        return folder
    return None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.cmake,
    linux,
]


@pytest.fixture
def group():
    made = cgroup()
    if made is None:
        pytest.skip("no memory cgroup can be made here: it takes root and a writable /sys/fs/cgroup")
    yield made
    made.rmdir()


@pytest.fixture
def kernel(plain):
    """A kernel with two files that together take more than the group has, and one at a time do not."""
    for name in ("one", "two"):
        (plain / f"csrc/{name}.cpp").write_text(HOG.format(name=name))
    edit(plain / "build.toml", '"csrc/scale.cpp"', '"csrc/scale.cpp", "csrc/one.cpp", "csrc/two.cpp"')
    return plain


@pytest.fixture
def own(new_store, kernel, tmp_path):
    """A store whose environment was made outside the group, where memory is no matter."""
    store = new_store(tmp_path / "store")
    builder("why", kernel, "--variant", PLAIN_CELL, store=store, check=0)
    return store


def build(group, kernel, store, *options, env=None):
    # The shell enters the group before it becomes the build, so that all of it counts.
    enters = ("/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    arguments = ("build", kernel, "--variant", PLAIN_CELL, "--json", *options)
    return builder(*arguments, prefix=enters, store=store, env=env, cwd=kernel.parent, check=0)


def test_admission_keeps_a_build_within_its_memory(group, kernel, own):
    done = build(group, kernel, own, "--jobs", "2")
    assert "alone" not in done.stderr
    assert json.loads(done.stdout)[0]["status"] == "built"


@pytest.mark.parametrize("env", [{}, {"CCACHE_DISABLE": "1"}], ids=["cached", "without a cache"])
def test_a_build_that_was_allowed_too_much_is_named_and_retried_alone(group, kernel, own, env):
    done = build(group, kernel, own, "--jobs", "2", "--memory", "32G", env=env)
    assert "Killed signal terminated program" in done.stderr
    assert "built again, alone" in done.stderr
