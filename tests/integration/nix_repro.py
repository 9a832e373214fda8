"""A cell through Nix as it is, and again in another store with everything varied that such a build could see."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from builder.repro.setting import Circumstances, Workspace, make_preload
from builder.repro.variations import VARIATIONS
from tests.integration import nix_tools

NOT_VARIED = {
    "user": "Nix without a daemon is its store's owner; the sandbox has a user of its own",
    "hostname": "the sandbox has a host name of its own",
    "store": "a store with another root takes its place",
    "cache": "the sandbox has none",
}
"""Variations that cannot be applied to a build by Nix, and why."""


@dataclass(frozen=True)
class Built:
    """What a build gave."""

    derivation: str
    sha256: str
    store: Path
    """The root of the store that it is in."""


def twice(kernel, variant, folder, *, elsewhere):
    """Build a kernel that no store has; again from another folder, with all varied, in another store `elsewhere`."""
    here = Circumstances(kernel=kernel, store=Path("/"), cwd=folder)
    workspace = Workspace(folder=folder / "workspace", preload=make_preload(folder))
    setting = here
    for variation in VARIATIONS:
        if variation.name not in NOT_VARIED:
            assert variation.why_not(workspace) is None
            setting = variation.apply(setting, workspace)
    elsewhere = elsewhere / "another" / "root"
    first = build(here, variant)
    copy_inputs(first.derivation, elsewhere)
    try:
        return first, build(setting, variant, store=elsewhere)
    finally:
        shutil.rmtree(workspace.elsewhere, ignore_errors=True)


def build(setting, variant, *, store=None):
    """Build a cell under a setting, in Nix's own store or in one below `store`."""
    where = () if store is None else ("--store", f"local?root={store}")
    cores = () if setting.jobs is None else ("--cores", setting.jobs)
    command = ["nix", *nix_tools.OPTIONS, "build", "--json", "--no-link", "--impure", *where, *map(str, cores)]
    command += ["--expr", nix_tools.expression([setting.kernel], variant), f'"{setting.kernel.name}"']
    pinned = [] if setting.cores is None else ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    with busy(setting.burners):
        done = subprocess.run(
            [*pinned, *setting.prefix, *command],
            env={**os.environ, **setting.environ},
            cwd=setting.cwd,
            umask=-1 if setting.umask is None else setting.umask,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    root = Path("/") if store is None else store
    (wheel,) = (root / found["outputs"]["out"].lstrip("/")).glob("*.whl")
    return Built(derivation=found["drvPath"], sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(), store=root)


def copy_inputs(derivation, store):
    """Bring what a derivation is built from into another store, so that only the cell itself is built there."""
    outputs = []
    for path in output("nix-store", "--query", "--references", derivation):
        outputs += output("nix-store", "--query", "--outputs", path) if path.endswith(".drv") else [path]
    copied = nix_tools.nix("copy", "--no-check-sigs", "--to", f"local?root={store}", *outputs)
    assert copied.returncode == 0, copied.stderr


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@contextlib.contextmanager
def busy(processes):
    running = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
