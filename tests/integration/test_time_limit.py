"""A build that its time limit stops again and again comes to its end, and loses nothing that was compiled."""

import functools
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
FILES = 6
# A file that takes the compiler a few seconds and little memory: the slowness is a loop in a constant.
SLOW = """
constexpr long slow() {{
  long sum = {name};
  for (long i = 0; i < 800000; ++i) {{ sum = sum * 31 + i % 7; sum %= 1000003; }}
  return sum;
}}
extern const long slow_{name};
constexpr long slow_{name}_value = slow();
const long slow_{name} = slow_{name}_value;
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture
def kernel(tmp_path):
    path = Path(shutil.copytree(ROOT / "tests/data/kernels/tiny", tmp_path / "tiny"))
    for name in range(FILES):
        (path / f"csrc/slow{name}.cpp").write_text(SLOW.format(name=name))
    config = path / "build.toml"
    sources = ", ".join(f'"csrc/slow{name}.cpp"' for name in range(FILES))
    flags = 'cxx-flags = ["-fconstexpr-ops-limit=4000000000", "-fconstexpr-loop-limit=2000000000"]\n'
    config.write_text(config.read_text().replace('"csrc/twice.cpp"', f'"csrc/twice.cpp", {sources}') + flags)
    return path


def compiled(store):
    """Return the files that ninja says it compiled since this was last asked."""
    lines = []
    for log in (store / "logs").glob("*.log"):
        lines += log.read_text(encoding="utf-8").splitlines()
        log.unlink()
    lines = [line for line in lines if "Building CXX object" in line and "csrc/slow" in line]
    return {line.rpartition("/")[2].partition(".cpp")[0] for line in lines}


def test_a_build_needs_several_runs_and_compiles_no_file_twice(builder, kernel, tmp_path):
    store = tmp_path / "store"
    builder("why", kernel, "--variant", VARIANT, store=store, check=0)
    build = functools.partial(
        builder,
        "build",
        kernel,
        "--variant",
        VARIANT,
        "--json",
        "--jobs",
        "1",
        store=store,
        env={"CCACHE_DISABLE": "1"},
    )
    first = done = build("--time-limit", "10s")
    runs, files = [done], [compiled(store)]
    while done.returncode == 1 and len(runs) < 20:
        # A little more each time: on a machine that is busy with other things a file must fit in.
        done = build("--time-limit", f"{10 + 2 * len(runs)}s")
        runs.append(done)
        files.append(compiled(store))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["status"] == "built"
    assert json.loads(first.stdout)[0]["status"] == "stopped"
    assert "goes on from what is finished" in first.stderr
    assert len(runs) >= 3
    # ninja names a file when it is done with it: none is named by two runs, and all are named by one.
    assert sum(map(len, files)) == len(set().union(*files)) == FILES
    assert not any((store / "partial").iterdir())
