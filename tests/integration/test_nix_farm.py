"""Many machines: remote builders over ssh-ng, wheels from a signed binary cache; each store stands for a machine."""

import contextlib
import getpass
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests import needs
from tests.integration import nix_tools

VARIANT = "tvm-ffi01-cpu-x86_64-linux"
SSHD = needs.find("sshd")

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the stores of two machines need root"),
]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def kernels(tmp_path):
    """Two kernels that no store has: each has a line of its own."""
    roots = []
    for name in ("one", "two"):
        root = Path(shutil.copytree(nix_tools.ROOT / "examples/relu-tvm-ffi", tmp_path / name))
        binding = root / "tvm-ffi-ext/tvm_ffi_binding.cpp"
        binding.write_text(f"// {secrets.token_hex(16)}\n{binding.read_text()}")
        roots.append(root)
    return roots


@pytest.fixture
def ssh(tmp_path):
    """A server on loopback; the options of a client."""
    if SSHD is None:
        pytest.skip(needs.why_not("sshd"))
    folder = tmp_path / "ssh"
    folder.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    port = free_port()
    Path("/run/sshd").mkdir(exist_ok=True)
    config = folder / "config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
        f"PidFile {folder}/pid\n"
    )
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=log)
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.1)
    options = (
        f"-p {port} -i {folder}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    )
    yield options
    server.terminate()
    server.wait()


@pytest.fixture
def machines(tmp_path):
    """Two machines: a store each, and the nix-daemon that serves it, with the settings of a farm's machine."""
    found = []
    for name in ("a", "b"):
        program = tmp_path / f"daemon-{name}"
        settings = (
            f"sandbox = true\nsandbox-fallback = false\nsubstitute = false\n"
            f"extra-sandbox-paths = {' '.join(nix_tools.HOST['sandbox-paths'])}\n"
            "build-users-group = \nexperimental-features = nix-command flakes\nrequire-sigs = false\n"
        )
        program.write_text(f"#!/bin/sh\nexport NIX_CONFIG='{settings}'\nexec nix-daemon \"$@\"\n")
        program.chmod(0o755)
        store = tmp_path / f"machine-{name}"
        user = getpass.getuser()
        found.append((store, f"ssh-ng://{user}@127.0.0.1?remote-program={program}&remote-store={store}"))
    return found


@pytest.fixture
def built(kernels):
    """The wheels of two kernels, built on this machine."""
    every = ("build", "--impure", "--no-link", "--json", "--expr", nix_tools.expression(kernels, VARIANT))
    built = []
    for name in ("one", "two"):  # Nix sorts what one command builds by its path, and not by its name
        done = nix_tools.nix(*every, name)
        assert done.returncode == 0, done.stderr
        built.append(json.loads(done.stdout)[0]["outputs"]["out"])
    return built


def test_two_remote_machines_build_the_cells_and_this_one_builds_none(kernels, ssh, machines):
    builders = " ; ".join(f"{uri} x86_64-linux - 1 1 - -" for _, uri in machines)
    done = nix_tools.nix(
        *("build", "--impure", "--no-link", "--json", "--expr", nix_tools.expression(kernels, VARIANT), "one", "two"),
        *("--builders", builders, "--max-jobs", "0", "--option", "builders-use-substitutes", "false"),
        env={"NIX_SSHOPTS": ssh},
    )
    assert done.returncode == 0, done.stderr
    outputs = [entry["outputs"]["out"] for entry in json.loads(done.stdout)]
    # The wheels came back, and each was built on a machine of its own.
    places = [[name.name for name, _ in machines if Path(f"{name}{output}").is_dir()] for output in outputs]
    assert sorted(len(place) for place in places) == [1, 1], done.stderr
    assert places[0] != places[1]
    for output in outputs:
        wheels = list(Path(output).glob("*.whl"))
        assert len(wheels) == 1
        assert json.loads((Path(output) / "record.json").read_text())["sandbox"] is True


def test_a_second_machine_takes_a_signed_wheel_from_a_cache_and_builds_nothing(kernels, built, tmp_path):
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
    wanted = ("build", "--impure", "--no-link", "--json", "--expr", nix_tools.expression(kernels, VARIANT), "one")
    taking = ("--store", other, "--max-jobs", "0", "--builders", "", "--option", "substituters", f"file://{cache}")
    options = tuple(text if text != "false" else "true" for text in nix_tools.OPTIONS[:5]) + nix_tools.OPTIONS[5:]
    done = nix_tools.nix(*wanted, *taking, "--option", "trusted-public-keys", public, options=options)
    assert done.returncode == 0, done.stderr
    assert "building '" not in done.stderr
    taken = Path(f"{other}{built[0]}")
    theirs, ours = next(taken.glob("*.whl")), next(Path(built[0]).glob("*.whl"))
    assert theirs.read_bytes() == ours.read_bytes()


def test_a_wheel_signed_by_another_key_is_not_taken(kernels, built, tmp_path):
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
        *("build", "--impure", "--no-link", "--expr", nix_tools.expression(kernels, VARIANT), "two", "--store", other),
        *("--max-jobs", "0", "--builders", "", "--option", "substituters", f"file://{cache}"),
        *("--option", "trusted-public-keys", public),
        options=options,
    )
    assert done.returncode != 0
    assert not Path(f"{other}{built[1]}").exists()
