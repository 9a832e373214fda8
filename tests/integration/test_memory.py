"""A build in a small cgroup: admitted by memory, and when it runs out all the same, built again alone."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
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
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture
def group():
    made = cgroup()
    if made is None:
        pytest.skip("no memory cgroup can be made here: it takes root and a writable /sys/fs/cgroup")
    yield made
    made.rmdir()


@pytest.fixture
def kernel(tmp_path):
    """A kernel with two files that together take more than the group has, and one at a time do not."""
    path = Path(shutil.copytree(ROOT / "tests/data/kernels/tiny", tmp_path / "tiny"))
    for name in ("one", "two"):
        (path / f"csrc/{name}.cpp").write_text(HOG.format(name=name))
    config = path / "build.toml"
    config.write_text(
        config.read_text().replace('"csrc/twice.cpp"', '"csrc/twice.cpp", "csrc/one.cpp", "csrc/two.cpp"')
    )
    return path


def build(group, kernel, store, *options, env=None):
    command = [sys.executable, "-m", "builder", "build", str(kernel), "--variant", VARIANT, "--json", *options]
    # The shell enters the group before it becomes the build, so that all of it counts.
    script = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    env = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT), **(env or {})}
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", *command],
        env=env,
        cwd=kernel.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def warm(store, kernel):
    """Make the environment outside the group, where memory is no matter."""
    env = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "builder", "why", str(kernel), "--variant", VARIANT],
        env=env, capture_output=True, check=True,
    )  # fmt: skip


def test_admission_keeps_a_build_within_its_memory(group, kernel, tmp_path):
    warm(tmp_path / "store", kernel)
    done = build(group, kernel, tmp_path / "store", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "alone" not in done.stderr
    assert json.loads(done.stdout)[0]["status"] == "built"


@pytest.mark.parametrize("env", [{}, {"CCACHE_DISABLE": "1"}], ids=["cached", "without a cache"])
def test_a_build_that_was_allowed_too_much_is_named_and_retried_alone(group, kernel, tmp_path, env):
    warm(tmp_path / "store", kernel)
    done = build(group, kernel, tmp_path / "store", "--jobs", "2", "--memory", "32G", env=env)
    assert done.returncode == 0, done.stderr
    assert "Killed signal terminated program" in done.stderr
    assert "built again, alone" in done.stderr
