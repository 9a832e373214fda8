"""A build that its time limit stops again and again comes to its end, and loses nothing that was compiled."""

import functools
import json

import pytest

from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL, linux

FILES = 6
# A file that takes the compiler a few seconds and little memory: the slowness is a loop in a constant.
SLOW = """
constexpr long slow() {{
  long sum = {name};
  for (long i = 0; i < 700000; ++i) {{ sum = sum * 31 + i % 7; sum %= 1000003; }}
  return sum;
}}
extern const long slow_{name};
constexpr long slow_{name}_value = slow();
const long slow_{name} = slow_{name}_value;
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cmake,
    linux,
]


@pytest.fixture
def kernel(plain):
    for name in range(FILES):
        (plain / f"csrc/slow{name}.cpp").write_text(SLOW.format(name=name))
    sources = ", ".join(f'"csrc/slow{name}.cpp"' for name in range(FILES))
    flags = 'cxx-flags = ["-fconstexpr-ops-limit=4000000000", "-fconstexpr-loop-limit=2000000000"]'
    edit(plain / "build.toml", 'src = ["csrc/scale.cpp"]', f'src = ["csrc/scale.cpp", {sources}]\n{flags}')
    return plain


def compiled(store):
    """Return the files that ninja says it compiled since this was last asked."""
    lines = []
    for log in (store / "logs").glob("*.log"):
        lines += log.read_text(encoding="utf-8").splitlines()
        log.unlink()
    lines = [line for line in lines if "Building CXX object" in line and "csrc/slow" in line]
    return {line.rpartition("/")[2].partition(".cpp")[0] for line in lines}


def test_a_build_needs_several_runs_and_compiles_no_file_twice(builder, kernel, new_store, tmp_path):
    store = new_store(tmp_path / "store")
    builder("why", kernel, "--variant", PLAIN_CELL, store=store, check=0)
    build = functools.partial(
        builder,
        "build",
        kernel,
        "--variant",
        PLAIN_CELL,
        "--json",
        "--jobs",
        "1",
        store=store,
        env={"CCACHE_DISABLE": "1"},
    )
    first = done = build("--time-limit", "5s")
    runs, files = [done], [compiled(store)]
    while done.returncode == 1 and len(runs) < 20:
        # A little more each time: on a machine that is busy with other things a file must fit in.
        done = build("--time-limit", f"{5 + 2 * len(runs)}s")
        runs.append(done)
        files.append(compiled(store))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["status"] == "built"
    assert json.loads(first.stdout)[0]["status"] == "stopped"
    assert "goes on from what is finished" in first.stderr
    assert len(runs) >= 2
    # ninja names a file when it is done with it: none is named by two runs, and all are named by one.
    assert sum(map(len, files)) == len(set().union(*files)) == FILES
    assert not any((store / "partial").iterdir())
