"""One cell on several machines: each compiles a part into a cache that they share, and one links all."""

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.test_compile_cache import (  # noqa: F401  fixtures
    Machine,
    environments,
    kernel,
    pytestmark,
)

pytestmark = [*pytestmark, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path, environments):  # noqa: F811
    """Three machines with stores of their own, and a folder that they share."""
    shared = tmp_path / "shared"
    shared.mkdir()
    return [Machine(tmp_path / name, environments) for name in ("one", "two", "three")], shared


def part(machine, kernel, shared, which):  # noqa: F811
    done = machine.run(kernel, "--cache", str(shared), "--cache-access", "read-write", "--part", which)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    assert result["status"] == "compiled"
    assert result["wheel"] is None
    return {file["output"] for file in result["report"]["files"] if file["output"].endswith(".o")}


def test_two_machines_compile_each_file_once_and_a_third_links_the_same_bytes(cluster, kernel):  # noqa: F811
    (one, two, three), shared = cluster
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda each: part(each[0], kernel, shared, each[1]), ((one, "1/2"), (two, "2/2")))
    assert not first & second
    assert abs(len(first) - len(second)) <= 1
    whole = three.build(kernel, "--cache", str(shared))
    assert whole.compiled == set()
    assert set(whole.cached.values()) == {str(shared)}
    assert whole.sha256 == three.build(kernel, "--no-cache").sha256


def test_without_a_machine_that_died_the_wheel_is_the_same(cluster, kernel):  # noqa: F811
    (one, two, three), shared = cluster
    options = ("--cache", str(shared), "--cache-access", "read-write", "--part", "2/2")
    dying = subprocess.Popen(
        two.command(kernel, *options), env=two.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        part(one, kernel, shared, "1/2")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list((two.store / "compiled").glob("*/*")):
            time.sleep(0.05)
        dying.send_signal(signal.SIGKILL)
    finally:
        dying.kill()
        dying.wait()
    whole = three.build(kernel, "--cache", str(shared))
    assert whole.cached
    assert whole.sha256 == three.build(kernel, "--no-cache").sha256


def test_more_parts_than_files_is_no_mistake(cluster, kernel):  # noqa: F811
    (one, _, _), shared = cluster
    assert part(one, kernel, shared, "999/999") == set()


def test_a_part_asks_nobody_for_what_only_a_load_test_needs(cluster, kernel):  # noqa: F811
    (one, _, _), shared = cluster
    with (kernel / "build.toml").open("a") as config:
        config.write('\n[wheel]\nrequires = ["no-such-package-of-any-index"]\n')
    assert part(one, kernel, shared, "1/2")
