"""Many machines: remote builders over ssh-ng, wheels from a signed binary cache; each store stands for a machine."""

import json
import os
import re
import secrets
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import needs
from tests.given.files import edit
from tests.given.kernels import PLAIN, PLAIN_CELL
from tests.integration import compiling, farm, nix_tools

SSHD = needs.find("sshd")

builder, unbuilt = nix_tools.builder, nix_tools.unbuilt

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the stores of two machines need root"),
]


def two(folder):
    """Make two kernels that no store has."""
    salts = {name: secrets.token_hex(16) for name in ("one", "two")}
    return [nix_tools.salted(PLAIN, folder / name, "csrc/scale.cpp", salt=salt) for name, salt in salts.items()]


@pytest.fixture
def ssh(tmp_path):
    """The options of a client of a server on loopback."""
    if SSHD is None:
        pytest.skip(needs.why_not("sshd"))
    with farm.ssh(SSHD, tmp_path / "ssh") as options:
        yield options


@pytest.fixture
def machines(tmp_path):
    """Two machines."""
    return [farm.Machine.make(tmp_path, name) for name in ("a", "b")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The expression of two kernels, and their wheels, built on this machine."""
    expression = nix_tools.expression(two(tmp_path_factory.mktemp("kernels")), PLAIN_CELL)
    built = []
    for name in ("one", "two"):  # Nix sorts what one command builds by its path, and not by its name
        done = nix_tools.nix("build", "--impure", "--no-link", "--json", "--expr", expression, name)
        assert done.returncode == 0, done.stderr
        built.append(json.loads(done.stdout)[0]["outputs"]["out"])
    return expression, built


def test_two_remote_machines_build_the_cells_and_this_one_builds_none(tmp_path, ssh, machines):
    expression = nix_tools.expression(two(tmp_path), PLAIN_CELL)
    done = nix_tools.nix(
        *("build", "--impure", "--no-link", "--json", "--expr", expression, "one", "two"),
        *farm.spread_over(machines),
        env={"NIX_SSHOPTS": ssh},
    )
    assert done.returncode == 0, done.stderr
    outputs = [entry["outputs"]["out"] for entry in json.loads(done.stdout)]
    # The wheels came back, and each was built on a machine of its own.
    places = [[machine.store.name for machine in machines if machine.has(output)] for output in outputs]
    assert sorted(len(place) for place in places) == [1, 1], done.stderr
    assert places[0] != places[1]
    for output in outputs:
        wheels = list(Path(output).glob("*.whl"))
        assert len(wheels) == 1
        assert json.loads((Path(output) / "record.json").read_text())["sandbox"] is True


def test_a_second_machine_takes_a_signed_wheel_from_a_cache_and_builds_nothing(built, tmp_path):
    expression, built = built
    secret, cache, other = tmp_path / "secret", tmp_path / "cache", tmp_path / "other"
    secret.write_text(nix_tools.nix("key", "generate-secret", "--key-name", "kernels-1").stdout)
    public = subprocess.run(
        ["nix", *nix_tools.OPTIONS, "key", "convert-secret-to-public"],
        input=secret.read_text(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for arguments in (
        ("store", "sign", "--key-file", secret, "--recursive", built[0]),
        ("copy", "--to", f"file://{cache}", built[0]),
    ):
        done = nix_tools.nix(*arguments)
        assert done.returncode == 0, done.stderr
    # What the second machine does: the same expression, no builder, no local job.
    wanted = ("build", "--impure", "--no-link", "--json", "--expr", expression, "one")
    taking = ("--store", other, "--max-jobs", "0", "--builders", "", "--option", "substituters", f"file://{cache}")
    options = tuple(text if text != "false" else "true" for text in nix_tools.OPTIONS[:5]) + nix_tools.OPTIONS[5:]
    done = nix_tools.nix(*wanted, *taking, "--option", "trusted-public-keys", public, options=options)
    assert done.returncode == 0, done.stderr
    assert "building '" not in done.stderr
    taken = Path(f"{other}{built[0]}")
    theirs, ours = next(taken.glob("*.whl")), next(Path(built[0]).glob("*.whl"))
    assert theirs.read_bytes() == ours.read_bytes()


def test_a_wheel_signed_by_another_key_is_not_taken(built, tmp_path):
    expression, built = built
    secret, cache, other = tmp_path / "secret", tmp_path / "cache", tmp_path / "other"
    secret.write_text(nix_tools.nix("key", "generate-secret", "--key-name", "stranger-1").stdout)
    for arguments in (
        ("store", "sign", "--key-file", secret, "--recursive", built[1]),
        ("copy", "--to", f"file://{cache}", built[1]),
    ):
        assert nix_tools.nix(*arguments).returncode == 0
    trusted = nix_tools.nix("key", "generate-secret", "--key-name", "kernels-1").stdout
    public = subprocess.run(
        ["nix", *nix_tools.OPTIONS, "key", "convert-secret-to-public"],
        input=trusted, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    options = tuple(text if text != "false" else "true" for text in nix_tools.OPTIONS[:5]) + nix_tools.OPTIONS[5:]
    done = nix_tools.nix(
        *("build", "--impure", "--no-link", "--expr", expression, "two", "--store", other),
        *("--max-jobs", "0", "--builders", "", "--option", "substituters", f"file://{cache}"),
        *("--option", "trusted-public-keys", public),
        options=options,
    )
    assert done.returncode != 0
    assert not Path(f"{other}{built[1]}").exists()


def parents(process):
    """Return the ids of the processes that a process descends from."""
    found = []
    while process > 1:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        process = int(re.search(r"^PPid:\s*(\d+)", status, re.MULTILINE)[1])
        found.append(process)
    return found


def machine_of(process, machines):
    """Return the machine whose daemon runs a process, and the id of that daemon."""
    for parent in parents(process):
        line = Path(f"/proc/{parent}/cmdline").read_text(errors="replace")
        for machine in machines:
            if "--stdio" in line and str(machine.store) in line:
                return machine, parent
    raise AssertionError("no machine runs the compiler")


def test_a_builder_that_dies_in_mid_build_costs_time_and_not_the_wheel(builder, unbuilt, ssh, machines, tmp_path):
    # Another name and text each time: what an earlier run has compiled is in the store of Nix.
    slow = unbuilt / f"csrc/slow_{secrets.token_hex(8)}.cpp"
    slow.write_text(f"{compiling.busy(1)}\n// {slow.name}\n")
    edit(unbuilt / "build.toml", '"csrc/scale.cpp"', f'"csrc/scale.cpp", "csrc/{slow.name}"')
    env = {"NIX_SSHOPTS": ssh, "NIX_CONFIG": farm.settings(machines)}
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(
            builder, unbuilt, "--variant", PLAIN_CELL, "--per-file", "--json", "--output", tmp_path / "spread", env=env
        )
        while not (compilers := compiling.compilers_of(slow.name)):
            assert not building.done(), building.result().stderr
            time.sleep(0.1)
        machine, daemon = machine_of(compilers[0], machines)
        machine.program.write_text("#!/bin/sh\nexit 1\n")
        os.kill(daemon, signal.SIGKILL)
        for compiler in compiling.compilers_of(slow.name):
            os.kill(compiler, signal.SIGKILL)
        done = building.result()
    assert done.returncode == 0, done.stderr
    assert "a builder of Nix was lost" in done.stderr
    ours = Path(json.loads(done.stdout)[0]["wheel"])
    builder(unbuilt, "--variant", PLAIN_CELL, "--output", tmp_path / "local", engine=(), check=0)
    assert ours.read_bytes() == (tmp_path / "local" / ours.name).read_bytes()
