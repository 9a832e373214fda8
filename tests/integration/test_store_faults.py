"""What goes wrong with a store that is shared, killed, full, damaged or read-only, against whole builds."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import needs
from tests.cli.folders import write
from tests.given import processes
from tests.given.files import names, only_wheel, sha256
from tests.given.files import write as write_files
from tests.given.kernels import TINY, linux

KILLS = 200
STREAMS = 2
# Builds again and again in processes that have everything imported, and kills each at a random moment.
KILLER = """
import json, os, random, signal, sys, time
from builder import cli
from builder.cli import build
seed, rounds, span, *arguments = sys.argv[1:]
dice, ended = random.Random(int(seed)), 0
for _ in range(int(rounds)):
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        sys.argv = ["builder", *arguments]
        try:
            cli.main()
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(1)
    time.sleep(dice.uniform(0, float(span)))
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if status != signal.SIGKILL:
        assert status == 0, status
        ended += 1
print(json.dumps(ended))
"""

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    linux,
]


@pytest.fixture
def plain(tmp_path):
    """A kernel without anything to compile."""
    return write(tmp_path, "plain")


@pytest.fixture
def build(tmp_path):
    """Build a kernel by what is installed beside the tests, in a store that is hurt, and return what came of it."""

    def run(kernel, *options, store=tmp_path / "store", **more):
        own = ("--no-isolation", "--output", tmp_path / "dist", "--json")
        done = processes.builder("build", kernel, *own, *options, store=store, check=0, **more)
        return json.loads(done.stdout)[0]

    return run


@pytest.mark.slow
def test_after_200_kills_a_build_gives_the_right_wheel_and_nothing_is_left(build, plain, tmp_path):
    right = build(plain, store=tmp_path / "other")["sha256"]
    began = time.monotonic()
    build(plain, "--rebuild")
    span = time.monotonic() - began
    (tmp_path / "temporary").mkdir()
    parts = ["build", plain, "--no-isolation", "--output", tmp_path / "dist", "--rebuild", "--json"]
    killers = [
        subprocess.Popen(
            [sys.executable, "-c", KILLER, str(seed), str(KILLS // STREAMS), str(span), *map(str, parts)],
            env=processes.variables(tmp_path / "store", {"TMPDIR": tmp_path / "temporary"}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(STREAMS)
    ]
    ended = [json.loads(killer.communicate()[0]) for killer in killers]
    assert all(count < KILLS // STREAMS for count in ended), "nothing was killed: this test shows nothing"
    assert build(plain)["sha256"] == right
    assert sha256(only_wheel(tmp_path / "dist")) == right
    assert [name for name in names(tmp_path / "store/wheels") if name.startswith(".")] == []
    assert names(tmp_path / "store/scratch") == names(tmp_path / "temporary") == []


@pytest.mark.slow
def test_of_8_processes_that_build_one_cell_one_compiles_and_all_get_it(build, tiny, tmp_path):
    (tiny / "csrc/factor.h").write_text(f"#pragma once\n// {tmp_path}\nconstexpr float FACTOR = 2.0f;\n")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: build(tiny, "--output", tmp_path / f"dist{n}"), range(8)))
    assert sorted(result["status"] for result in done) == ["built", *["hit"] * 7]
    assert len({result["sha256"] for result in done}) == 1
    assert all(sha256(Path(result["wheel"])) == result["sha256"] for result in done)


@pytest.mark.slow
def test_processes_that_build_different_cells_each_get_their_own(build, tmp_path):
    found = []
    for n in range(4):
        kernel = Path(shutil.copytree(TINY, tmp_path / f"tiny{n}"))
        (kernel / "csrc/factor.h").write_text(f"#pragma once\n// {tmp_path}\nconstexpr float FACTOR = {n}.0f;\n")
        found.append(kernel)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda kernel: build(kernel, "--output", kernel / "dist"), found))
    assert [result["status"] for result in done] == ["built"] * 4
    assert len({result["sha256"] for result in done}) == 4


namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason=needs.why_not("unshare") or "this kernel allows no user namespaces",
)
# Arguments: store, size, command. It runs twice: on a full disk, and when there is room again.
FULL = """
mount -t tmpfs -o size="$2" tmpfs "$1" || exit 99
store=$1; shift 2
"$@"; first=$?
mount -o remount,size=64m "$store" || exit 99
"$@" >&2 || exit 98
exit $first
"""


@namespaces
@pytest.mark.slow
@pytest.mark.parametrize("size", ["8k", "24k", "40k", "48k"])
def test_a_full_disk_is_said_and_leaves_nothing_to_clean(build, plain, size, tmp_path):
    right = build(plain, store=tmp_path / "other")["sha256"]
    (tmp_path / "store").mkdir()
    command = ("build", plain, "--no-isolation", "--output", tmp_path / "dist", "--json")
    prefix = ("unshare", "-rm", "sh", "-c", FULL, "sh", tmp_path / "store", size)
    done = processes.builder(*command, store=tmp_path / "store", prefix=prefix, check=4)
    assert "No space left on device" in done.stdout + done.stderr
    assert "\n1 built\n" in done.stderr  # by the second command, on the same store
    assert sha256(only_wheel(tmp_path / "dist")) == right


@namespaces
def test_a_project_that_the_disk_has_no_room_for_is_said(plain, tmp_path):
    script = 'mount -t tmpfs -o size=4k tmpfs "$1" || exit 99; shift; exec "$@"'
    (tmp_path / "full").mkdir()
    render = ("render", plain, "--backend", "cpu", "--output", tmp_path / "full/project")
    done = processes.builder(*render, prefix=("unshare", "-rm", "sh", "-c", script, "sh", tmp_path / "full"), check=4)
    assert f"cannot write to '{tmp_path}/full/project': No space left on device" in done.stderr
    assert "help: free the disk" in done.stderr


@pytest.mark.slow
@namespaces
def test_a_read_only_store_gives_what_it_has_and_keeps_nothing_new(build, plain, tmp_path):
    first = build(plain)
    before = names(tmp_path / "store/wheels")
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"'
    prefix = ("unshare", "-rm", "sh", "-c", script, "sh", tmp_path / "store")
    again = build(plain, prefix=prefix)
    assert (again["status"], again["sha256"]) == ("hit", first["sha256"])
    (plain / "torch-ext/plain/__init__.py").write_text("ANSWER = 43\n")
    new = build(plain, prefix=prefix)
    assert (new["status"], new["sha256"] != first["sha256"]) == ("built", True)
    assert sha256(Path(new["wheel"])) == new["sha256"]
    assert names(tmp_path / "store/wheels") == before


@pytest.mark.slow
def test_the_lock_of_a_dead_host_holds_nobody_up(build, plain, tmp_path):
    key = build(plain, "--dry-run", store=tmp_path / "other")["key"]
    write_files(tmp_path / "store/locks", {key: "held by process 1 of a host that is no more"})
    assert build(plain)["status"] == "built"


@pytest.mark.slow
def test_a_clock_that_went_backwards_changes_no_answer(build, plain, tmp_path):
    first = build(plain)
    future = time.time() + 10 * 365 * 86400
    for path in (*(tmp_path / "store").rglob("*"), *plain.rglob("*")):
        if not path.is_symlink():
            os.utime(path, (future, future))
    again = build(plain)
    assert (again["status"], again["sha256"]) == ("hit", first["sha256"])
    collect = ("store", "gc", "--max-age", "1s", "--dry-run")
    assert "wheel" not in processes.builder(*collect, store=tmp_path / "store", check=0).stdout


def test_a_flipped_bit_in_a_stored_wheel_is_never_delivered(build, plain, tmp_path):
    first = build(plain)
    (stored,) = (tmp_path / "store/wheels").glob("*/*.whl")
    content = bytearray(stored.read_bytes())
    content[len(content) // 2] ^= 1
    stored.write_bytes(content)
    again = build(plain)
    assert (again["status"], again["sha256"]) == ("built", first["sha256"])
    assert "damaged" in again["reason"]
