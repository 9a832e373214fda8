"""What goes wrong with a store that is shared, killed, full, damaged or read-only, against whole builds."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder import cli
from tests import needs
from tests.cli.folders import write
from tests.given import processes
from tests.given.files import edit, names, only_wheel, sha256
from tests.given.files import write as write_files
from tests.given.kernels import PLAIN, PLAIN_CELL, copied, linux
from tests.given.kills import before_each_change

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
def test_after_a_kill_before_each_change_a_build_gives_the_right_wheel_and_nothing_is_left(
    build, plain, monkeypatch, tmp_path
):
    right = build(plain, store=tmp_path / "other")["sha256"]
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    own = ("--output", tmp_path / "dist", "--store", tmp_path / "store")
    arguments = [*map(str, ("build", plain, "--no-isolation", "--rebuild", "--json", *own))]
    changes = {*before_each_change(lambda: cli.run(arguments))}
    assert changes >= {"open", "os.mkdir", "os.remove", "os.rename"}
    assert build(plain)["sha256"] == right
    assert sha256(only_wheel(tmp_path / "dist")) == right
    assert [name for name in names(tmp_path / "store/wheels") if name.startswith(".")] == []
    assert names(tmp_path / "store/scratch") == names(tmp_path / "temporary") == []


@pytest.mark.slow
def test_of_8_processes_that_build_one_cell_one_compiles_and_all_get_it(build, tmp_path):
    kernel = copied(PLAIN, tmp_path / "own")
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(lambda n: build(kernel, "--variant", PLAIN_CELL, "--output", tmp_path / f"dist{n}"), range(8))
        )
    assert sorted(result["status"] for result in done) == ["built", *["hit"] * 7]
    assert len({result["sha256"] for result in done}) == 1
    assert all(sha256(Path(result["wheel"])) == result["sha256"] for result in done)


@pytest.mark.slow
def test_processes_that_build_different_cells_each_get_their_own(build, tmp_path):
    found = []
    for n in range(4):
        kernel = copied(PLAIN, tmp_path / f"own{n}")
        edit(kernel / "build.toml", "ANSWER = 42", f"ANSWER = {n + 1}")
        found.append(kernel)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda kernel: build(kernel, "--variant", PLAIN_CELL, "--output", kernel / "dist"), found))
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
