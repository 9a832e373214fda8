"""A farm of Nix on this machine: builders behind ssh, each with a store and a daemon of its own."""

import contextlib
import getpass
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.given.servers import free_port
from tests.integration import nix_tools


@contextlib.contextmanager
def ssh(sshd, folder):
    """Run a server on loopback; give the options of a client."""
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
        server = subprocess.Popen([sshd, "-D", "-e", "-f", config], stderr=log)
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.1)
    try:
        yield (
            f"-p {port} -i {folder}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        )
    finally:
        server.terminate()
        server.wait()


@dataclass(frozen=True)
class Machine:
    """A builder: a store, and the nix-daemon that serves it, with the settings of a farm's machine."""

    store: Path
    program: Path
    uri: str

    @classmethod
    def make(cls, folder, name, *, core=None):
        """Make one; with a core, all that it runs is bound to that."""
        store, program = folder / f"machine-{name}", folder / f"daemon-{name}"
        settings = (
            f"sandbox = true\nsandbox-fallback = false\nsubstitute = false\n"
            f"extra-sandbox-paths = {' '.join(nix_tools.HOST['sandbox-paths'])}\n"
            "build-users-group = \nexperimental-features = nix-command flakes\nrequire-sigs = false\n"
        )
        bound = "" if core is None else f"taskset -c {core} "
        program.write_text(f"#!/bin/sh\nexport NIX_CONFIG='{settings}'\nexec {bound}nix-daemon \"$@\"\n")
        program.chmod(0o755)
        uri = f"ssh-ng://{getpass.getuser()}@127.0.0.1?remote-program={program}&remote-store={store}"
        return cls(store=store, program=program, uri=uri)

    def has(self, output):
        """Whether it built an output, or was given it."""
        return Path(f"{self.store}{output}").exists()


def lines(machines, *, jobs=1):
    return " ; ".join(f"{machine.uri} x86_64-linux - {jobs} 1 - -" for machine in machines)


def settings(machines):
    """Return the same as lines of nix.conf."""
    return f"builders = {lines(machines)}\nmax-jobs = 0\nbuilders-use-substitutes = false\n"


def spread_over(machines, *, jobs=1):
    """Return the options of Nix that build on these machines alone, so many derivations at a time each."""
    there = ("--builders", lines(machines, jobs=jobs), "--max-jobs", "0")
    return (*there, "--option", "builders-use-substitutes", "false")
