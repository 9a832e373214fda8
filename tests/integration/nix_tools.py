"""Nix as the integration tests run it: with the host's tools, sandboxed, as `docs/nix.md` says."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from builder import toml
from builder.engine import nix_command
from tests import needs
from tests.given.kernels import PLAIN, TINY

ROOT = Path(__file__).parent.parent.parent
LIBRARY = ROOT / "builder/nix"
HOST = toml.loads((LIBRARY / "host/host.toml").read_text(encoding="utf-8"))
OPTIONS = (
    *("--extra-experimental-features", "nix-command flakes", "--option", "substitute", "false"),
    *("--option", "sandbox", "true", "--option", "sandbox-fallback", "false"),
    *("--option", "extra-sandbox-paths", " ".join(HOST["sandbox-paths"])),
    *nix_command.building_users(os.environ),
)
_NOT_SOURCES = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".hypothesis")
OF_THIS_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(16)
_OUTPUTS = shutil.ignore_patterns("build", "demo", "dist", "result*", "site")
"""What is written into the folder of the project itself; `builder/build` is none of it."""


@cache
def why_not():
    """Say why this machine cannot build with Nix and the host's tools; empty when it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "pinned for x86_64-linux"
    if shutil.which("nix") is None:
        return needs.why_not("nix")
    missing = [path for path in HOST["pythons"].values() if not Path(path).exists()]
    if missing:
        return f"the host package set's Python is not here: {missing[0]}"
    probe = nix("store", "ping")
    return "" if probe.returncode == 0 else f"no store: {probe.stderr.strip()[-200:]}"


@pytest.fixture(scope="session")
def flake(tmp_path_factory):
    """The sources of the project, without what tests and people write beside them: Nix copies all that is in a path."""
    copy = tmp_path_factory.mktemp("flake") / "builder"

    def ignored(folder, names):
        return _NOT_SOURCES(folder, names) | (_OUTPUTS(folder, names) if Path(folder) == ROOT else set())

    return Path(shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored))


@contextmanager
def guarded_folder():
    """Make a folder for a store: Nix 2.34 takes none below a folder where everybody may write, as in /tmp."""
    above = Path.home() / ".cache"
    above.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=above))
    try:
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        shutil.rmtree(folder)


@pytest.fixture
def guarded():
    with guarded_folder() as folder:
        yield folder


@pytest.fixture
def builder(tmp_path):
    def run(*arguments, env=None, check=None, engine=("--engine", "nix", "--package-set", "host")):
        done = subprocess.run(
            [sys.executable, "-m", "builder", "build", *map(str, arguments), *engine],
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "\nTraceback" not in done.stderr, done.stderr  # one of the wheel's own is indented
        if check is not None:
            assert done.returncode == check, done.stderr
        return done

    return run


@pytest.fixture
def tiny(tmp_path):
    """A kernel for torch, in a folder with a space and no Git; the tests of a run share what is built of it."""
    return salted(TINY, tmp_path / "a kernel", "csrc/factor.h")


@pytest.fixture
def relu(tmp_path):
    """A kernel for tvm-ffi; the tests of a run share what is built of it."""
    return salted(ROOT / "examples/relu-tvm-ffi", tmp_path / "relu", "tvm-ffi-ext/relu_kernels.h")


@pytest.fixture
def plain(tmp_path):
    """A kernel of plain C++, for what has nothing to do with torch; the tests of a run share what is built of it."""
    return salted(PLAIN, tmp_path / "plain", "csrc/scale.cpp")


@pytest.fixture
def unbuilt(tmp_path):
    """A kernel of plain C++ that no store has."""
    return salted(PLAIN, tmp_path / "plain", "csrc/scale.cpp", salt=secrets.token_hex(16))


def salted(source, target, file, *, salt=OF_THIS_RUN):
    """Copy a kernel, with a line in one of its files that no earlier run has built."""
    root = Path(shutil.copytree(source, target))
    path = root / file
    path.write_text(f"// {salt}\n{path.read_text()}")
    return root


def override(flake, name="nixpkgs"):
    """Return the words that give a flake this machine's own tools."""
    return ("--override-input", name, f"path:{flake / 'builder/nix/host'}", "--no-write-lock-file")


def nix(*arguments, env=None, cwd=None, options=OPTIONS):
    return subprocess.run(
        ["nix", *options, *map(str, arguments)],
        env={**os.environ, **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def expression(kernels, variant, **more):
    """Return a Nix expression with a cell of each kernel, by its folder's name; `more` is asked of the engine."""
    cells = ""
    for root in kernels:
        request = {
            "kernel": str(root),
            "lock": str(ROOT / "flake.lock"),
            "set": "host",
            "system": "x86_64-linux",
            "options": {},
            "variants": [variant],
            **more,
        }
        text = json.dumps(json.dumps(request)).replace("${", "\\${")
        cells += f'  {root.name} = (import {LIBRARY}/engine.nix {{ request = {text}; }}).cells."{variant}";\n'
    return f"{{\n{cells}}}\n"


needs_nix = [
    pytest.mark.nix,
    pytest.mark.slow,
]
