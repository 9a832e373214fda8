"""What goes wrong with a store that is shared, killed, full, damaged or read-only, against whole builds."""

import hashlib
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

ROOT = Path(__file__).parent.parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
NOARCH = "torch-cpu"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
CONFIG = """
[general]
name = "plain"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch-noarch]
"""
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
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    """The store that the tests of a run share; its environments serve the stores that are hurt here."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "store"


@pytest.fixture
def plain(tmp_path):
    """A kernel without anything to compile."""
    package = tmp_path / "plain/torch-ext/plain"
    package.mkdir(parents=True)
    (tmp_path / "plain/build.toml").write_text(CONFIG)
    (package / "__init__.py").write_text("ANSWER = 42\n")
    return tmp_path / "plain"


@pytest.fixture
def store(environments, plain, tmp_path):
    """A store of its own, with the environments of the shared one."""
    run(plain, store=environments, output=tmp_path / "first")
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "environments").symlink_to(environments / "environments")
    return folder


def command(directory, *, output, variant=NOARCH, more=()):
    parts = ["build", directory, "--variant", variant, "--output", output, "--json", *more]
    return [sys.executable, "-m", "builder", *map(str, parts)]


def run(directory, *, store, output, variant=NOARCH, more=(), prefix=(), check=0):
    env = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)}
    argv = [*map(str, prefix), *command(directory, output=output, variant=variant, more=more)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == check, done.stderr
    return json.loads(done.stdout)[0] if done.stdout.strip().startswith("[") else done.stderr


@pytest.mark.slow
def test_after_200_kills_a_build_gives_the_right_wheel_and_nothing_is_left(plain, store, tmp_path):
    right = run(plain, store=store, output=tmp_path / "right")["sha256"]
    began = time.monotonic()
    run(plain, store=store, output=tmp_path / "dist", more=["--rebuild"])
    span = time.monotonic() - began
    env = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)}
    parts = ["build", plain, "--variant", NOARCH, "--output", tmp_path / "dist", "--rebuild", "--json"]
    killers = [
        subprocess.Popen(
            [sys.executable, "-c", KILLER, str(seed), str(KILLS // STREAMS), str(span), *map(str, parts)],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(STREAMS)
    ]
    ended = [json.loads(killer.communicate()[0]) for killer in killers]
    assert all(count < KILLS // STREAMS for count in ended), "nothing was killed: this test shows nothing"
    again = run(plain, store=store, output=tmp_path / "dist")
    assert again["sha256"] == right
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == right
    assert [path for path in (store / "wheels").iterdir() if path.name.startswith(".")] == []
    assert list((store / "scratch").iterdir()) == []


@pytest.mark.slow
def test_of_8_processes_that_build_one_cell_one_compiles_and_all_get_it(environments, tmp_path):
    kernel = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    (kernel / "csrc/factor.h").write_text(f"#pragma once\n// {tmp_path}\nconstexpr float FACTOR = 2.0f;\n")
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(lambda n: run(kernel, store=environments, output=tmp_path / f"dist{n}", variant=VARIANT), range(8))
        )
    assert sorted(result["status"] for result in done) == ["built", *["hit"] * 7]
    assert len({result["sha256"] for result in done}) == 1
    for result in done:
        assert hashlib.sha256(Path(result["wheel"]).read_bytes()).hexdigest() == result["sha256"]


@pytest.mark.slow
def test_processes_that_build_different_cells_each_get_their_own(environments, tmp_path):
    kernels = []
    for n in range(4):
        kernel = Path(shutil.copytree(TINY, tmp_path / f"tiny{n}"))
        (kernel / "csrc/factor.h").write_text(f"#pragma once\n// {tmp_path}\nconstexpr float FACTOR = {n}.0f;\n")
        kernels.append(kernel)
    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(lambda kernel: run(kernel, store=environments, output=kernel / "dist", variant=VARIANT), kernels)
        )
    assert [result["status"] for result in done] == ["built"] * 4
    assert len({result["sha256"] for result in done}) == 4


namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason=needs.why_not("unshare") or "this kernel allows no user namespaces",
)
# Arguments: store, size, environments, command. It runs twice: on a full disk, and when there is room again.
FULL = """
mount -t tmpfs -o size="$2" tmpfs "$1" && ln -s "$3" "$1/environments" || exit 99
store=$1; shift 3
"$@"; first=$?
mount -o remount,size=64m "$store" || exit 99
"$@" >&2 || exit 98
exit $first
"""


@namespaces
@pytest.mark.slow
@pytest.mark.parametrize("size", ["8k", "24k", "40k", "48k"])
def test_a_full_disk_is_said_and_leaves_nothing_to_clean(plain, store, environments, size, tmp_path):
    right = run(plain, store=environments, output=tmp_path / "right")["sha256"]
    shared = environments / "environments"
    argv = ["unshare", "-rm", "sh", "-c", FULL, "sh", store, size, shared, *command(plain, output=tmp_path / "dist")]
    env = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(list(map(str, argv)), env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 4, done.stderr
    assert "No space left on device" in done.stdout + done.stderr
    assert "\n1 built\n" in done.stderr  # by the second command, on the same store
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == right


@namespaces
def test_a_project_that_the_disk_has_no_room_for_is_said(plain, tmp_path):
    script = 'mount -t tmpfs -o size=4k tmpfs "$1" || exit 99; shift; exec "$@"'
    render = [
        sys.executable,
        "-m",
        "builder",
        "render",
        plain,
        "--backend",
        "cpu",
        "--output",
        tmp_path / "full/project",
    ]
    (tmp_path / "full").mkdir()
    argv = ["unshare", "-rm", "sh", "-c", script, "sh", tmp_path / "full", *render]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(list(map(str, argv)), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert f"cannot write to '{tmp_path}/full/project': No space left on device" in done.stderr
    assert "help: free the disk" in done.stderr


@pytest.mark.slow
@namespaces
def test_a_read_only_store_gives_what_it_has_and_keeps_nothing_new(plain, store, tmp_path):
    first = run(plain, store=store, output=tmp_path / "dist")
    before = sorted(path.name for path in (store / "wheels").iterdir())
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"'
    prefix = ["unshare", "-rm", "sh", "-c", script, "sh", store]
    again = run(plain, store=store, output=tmp_path / "dist", prefix=prefix)
    assert (again["status"], again["sha256"]) == ("hit", first["sha256"])
    (plain / "torch-ext/plain/__init__.py").write_text("ANSWER = 43\n")
    new = run(plain, store=store, output=tmp_path / "dist", prefix=prefix)
    assert (new["status"], new["sha256"] != first["sha256"]) == ("built", True)
    assert hashlib.sha256(Path(new["wheel"]).read_bytes()).hexdigest() == new["sha256"]
    assert sorted(path.name for path in (store / "wheels").iterdir()) == before


@pytest.mark.slow
def test_the_lock_of_a_dead_host_holds_nobody_up(plain, store, environments, tmp_path):
    key = run(plain, store=environments, output=tmp_path / "dist", more=["--dry-run"])["key"]
    locks = store / "locks"
    locks.mkdir(exist_ok=True)
    for name in (key, *(f"environment-{path.name}" for path in (store / "environments").iterdir())):
        (locks / name).write_text("held by process 1 of a host that is no more")
    assert run(plain, store=store, output=tmp_path / "dist")["status"] == "built"


@pytest.mark.slow
def test_a_clock_that_went_backwards_changes_no_answer(plain, store, tmp_path):
    first = run(plain, store=store, output=tmp_path / "dist")
    future = time.time() + 10 * 365 * 86400
    for path in (*store.rglob("*"), *plain.rglob("*")):
        if not path.is_symlink():
            os.utime(path, (future, future))
    again = run(plain, store=store, output=tmp_path / "dist")
    assert (again["status"], again["sha256"]) == ("hit", first["sha256"])
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    collect = [sys.executable, "-m", "builder", "store", "gc", "--store", str(store), "--max-age", "1s", "--dry-run"]
    done = subprocess.run(collect, env=env, capture_output=True, text=True, check=True)
    assert "wheel" not in done.stdout


def test_a_flipped_bit_in_a_stored_wheel_is_never_delivered(plain, store, tmp_path):
    first = run(plain, store=store, output=tmp_path / "dist")
    (stored,) = (store / "wheels").glob("*/*.whl")
    content = bytearray(stored.read_bytes())
    content[len(content) // 2] ^= 1
    stored.write_bytes(content)
    again = run(plain, store=store, output=tmp_path / "dist")
    assert (again["status"], again["sha256"]) == ("built", first["sha256"])
    assert "damaged" in again["reason"]
