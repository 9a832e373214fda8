"""One cell on several machines: each compiles a part into a cache that they share, and one links all."""

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.given import processes
from tests.given.kernels import PLAIN_CELL
from tests.integration.test_compile_cache import Machine, pytestmark

pytestmark = [*pytestmark, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path):
    """Three machines with stores of their own, and a folder that they share."""
    shared = tmp_path / "shared"
    shared.mkdir()
    return [Machine(tmp_path / name) for name in ("one", "two", "three")], shared


def part(machine, kernel, shared, which):
    done = machine.run(kernel, "--cache", str(shared), "--cache-access", "read-write", "--part", which)
    (result,) = json.loads(done.stdout)
    assert result["status"] == "compiled"
    assert result["wheel"] is None
    return {file["output"] for file in result["report"]["files"] if file["output"].endswith(".o")}


def test_two_machines_compile_each_file_once_and_a_third_links_the_same_bytes(cluster, headed):
    (one, two, three), shared = cluster
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda each: part(each[0], headed, shared, each[1]), ((one, "1/2"), (two, "2/2")))
    assert not first & second
    assert abs(len(first) - len(second)) <= 1
    whole = three.build(headed, "--cache", str(shared))
    assert whole.compiled == set()
    assert set(whole.cached.values()) == {str(shared)}
    assert whole.sha256 == three.build(headed, "--no-cache").sha256


def test_without_a_machine_that_died_the_wheel_is_the_same(cluster, headed):
    (one, two, three), shared = cluster
    options = ("--cache", str(shared), "--cache-access", "read-write", "--part", "2/2")
    dying = subprocess.Popen(
        processes.command(*two.options(headed, *options)),
        env=two.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        part(one, headed, shared, "1/2")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list((two.store / "compiled").glob("*/*")):
            time.sleep(0.05)
        dying.send_signal(signal.SIGKILL)
    finally:
        dying.kill()
        dying.wait()
    whole = three.build(headed, "--cache", str(shared))
    assert whole.cached
    assert whole.sha256 == three.build(headed, "--no-cache").sha256


def test_more_parts_than_files_is_no_mistake(cluster, headed):
    (one, _, _), shared = cluster
    assert part(one, headed, shared, "999/999") == set()


def test_a_part_asks_nobody_for_what_only_a_load_test_needs(builder, headed, tmp_path):
    with (headed / "build.toml").open("a") as config:
        config.write('\n[wheel]\nrequires = ["no-such-package-of-any-index"]\n')
    (tmp_path / "shared").mkdir()
    shared = ("--cache", tmp_path / "shared", "--cache-access", "read-write", "--part", "1/2")
    (result,) = json.loads(builder("build", headed, "--variant", PLAIN_CELL, "--json", *shared, check=0).stdout)
    assert result["status"] == "compiled"
    assert result["report"]["files"]
