"""A kernel that loads others, built by Nix: its load test has what `kernels.lock` names, inside the sandbox."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.make import kernel_lock
from tests import hub_folder, kernel_hub
from tests.cli.folders import write
from tests.given.kernels import TINY
from tests.given.kernels import TINY_CELL as STABLE
from tests.given.processes import builder as run
from tests.integration import nix_tools

builder, flake = nix_tools.builder, nix_tools.flake
PURE = "torch-cpu"
"""The cell of a kernel that compiles nothing, for what has nothing to do with compilers."""
PYTHON = """\
from kernels import get_kernel_dep

base = get_kernel_dep("team/base")
assert base.four_times(1) == 4
"""
FOUR_TIMES = """\
# {salt}
import torch
from kernels import get_kernel_dep

low = get_kernel_dep("team/low")


def four_times(number):
    return int(low.twice(low.twice(torch.tensor([float(number)]))).item())
"""
LOW = {"repo-id": "team/low", "version": 1}

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
]


@pytest.fixture
def hub(tmp_path):
    """A folder of the hub with a kernel that no store of Nix has; it depends on a compiled one."""
    compiled = nix_tools.salted(TINY, tmp_path / "low", "csrc/factor.h")
    run("build", compiled, "--variant", STABLE, "--output", tmp_path / "built", check=0)
    run("bundle", *(tmp_path / "built").glob("*.whl"), "--output", tmp_path / "bundle/build", check=0)
    files = {
        path.relative_to(tmp_path / "bundle").as_posix(): path.read_bytes()
        for path in (tmp_path / "bundle").rglob("*")
        if path.is_file()
    }
    hub_folder.add(tmp_path / "hub", "team/low", files)
    base = hub_folder.kernel(depends=[LOW], init=FOUR_TIMES.format(salt=secrets.token_hex(16)))
    hub_folder.add(tmp_path / "hub", "team/base", base)
    return tmp_path / "hub"


@pytest.fixture
def user(tmp_path, hub):
    """A compiled kernel that depends on the hub's, locked."""
    root = nix_tools.salted(TINY, tmp_path / "user", "csrc/factor.h")
    text = PYTHON.replace("\nbase", "\nfrom ._ops import ops\n\nbase")
    (root / "torch-ext/tiny/__init__.py").write_text(text, encoding="utf-8")
    return locked(root, hub)


@pytest.fixture
def pure(tmp_path, hub):
    """The same without anything to compile."""
    root = write(tmp_path, "user")
    (root / "torch-ext/user/__init__.py").write_text(PYTHON, encoding="utf-8")
    return locked(root, hub)


def locked(kernel, hub):
    hub_folder.depend(kernel, "team/base")
    run("lock", kernel, "--store", hub.parent / "store", "--from-folder", hub, check=0)
    return kernel


def here(tmp_path):
    return {"BUILDER_STORE": str(tmp_path / "store"), "BUILDER_KERNELS": str(tmp_path / "hub")}


def built(builder, user, *arguments, env, variant=PURE, output="nix", engine=None, check=0):
    words = (user, "--variant", variant, "--output", user.parent / output, "--json", *arguments)
    done = builder(*words, env=env, check=check, **({} if engine is None else {"engine": engine}))
    return done, json.loads(done.stdout)[0]


def test_a_kernel_is_loaded_with_what_its_lock_names_and_is_the_same_file_from_both_engines(builder, user, tmp_path):
    shutil.rmtree(tmp_path / "store")
    stable = {"env": here(tmp_path), "variant": STABLE}
    _, nix = built(builder, user, **stable)
    _, local = built(builder, user, **stable, output="local", engine=())
    assert nix["report"]["load-test"]["outcome"] == local["report"]["load-test"]["outcome"] == "loaded"
    assert nix["report"]["load-test"]["packages"] == local["report"]["load-test"]["packages"]
    assert [name for name in nix["report"]["load-test"]["packages"] if name.startswith("team/base ")]
    assert nix["sha256"] == local["sha256"]
    # Where Nix has the kernels, nobody needs the hub or the store.
    shutil.rmtree(tmp_path / "store")
    shutil.rmtree(tmp_path / "hub")
    _, again = built(builder, user, **stable)
    assert again["status"] == "hit"
    _, by_file = built(builder, user, "--per-file", **stable, output="files")
    assert by_file["status"] == "built"
    assert by_file["report"]["load-test"] == nix["report"]["load-test"]
    assert by_file["sha256"] == nix["sha256"]


def test_what_is_wrong_with_a_lock_fails_the_cell_and_says_what_to_do(builder, pure, tmp_path):
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "hub").rename(tmp_path / "away")
    done, cell = built(builder, pure, env=here(tmp_path), check=4)
    assert cell["status"] == "failed"
    assert "hf download team/base" in done.stderr
    _, tried = built(builder, pure, "--load-test", "try", env=here(tmp_path))
    assert tried["report"]["load-test"]["outcome"] == "not-tested"
    _, skipped = built(builder, pure, "--load-test", "skip", env=here(tmp_path))
    assert skipped["report"]["load-test"]["by-choice"] is True
    (tmp_path / "away").rename(tmp_path / "hub")
    locks = kernel_lock.read(pure)
    low = next(wanted for wanted in locks if wanted.repo_id == "team/low")
    (pure / "kernels.lock").write_bytes(kernel_lock.dump({each: locks[each] for each in locks if each != low}))
    done, _ = built(builder, pure, env=here(tmp_path), check=4)
    assert "'team/low' (version 1) is not in kernels.lock\n  help: lock it: builder lock" in done.stderr
    _, tried = built(builder, pure, "--load-test", "try", env=here(tmp_path))
    assert tried["report"]["load-test"]["outcome"] == "not-tested"
    (pure / "kernels.lock").write_text("{}", encoding="utf-8")
    done, _ = built(builder, pure, env=here(tmp_path), check=2)
    assert "is not a lock of kernels: it is not a list" in done.stderr


def by_flake(pure, flake, *options, **environ):
    """Build the cell by a flake of its own."""
    (pure / "flake.nix").write_text(
        "{\n"
        f'  inputs.builder.url = "path:{flake}";\n'
        "  outputs = { self, builder }: builder.lib.kernelFlake { inherit self; path = ./.; };\n"
        "}\n"
    )
    cell = f'.#cells.x86_64-linux."{PURE}"'
    words = ("build", "-L", "--json", "--no-link", cell, *nix_tools.override(flake, "builder/nixpkgs"))
    return nix_tools.nix(*words, *options, cwd=pure, env=environ)


def outcome(done):
    """Return what came of the load test of a cell that Nix built."""
    assert done.returncode == 0, done.stderr
    (output,) = (Path(entry["outputs"]["out"]) for entry in json.loads(done.stdout))
    return json.loads((output / "record.json").read_text(encoding="utf-8"))["report"]["load-test"]["outcome"]


def test_a_flake_says_how_to_bring_locked_kernels_and_then_builds(pure, flake, tmp_path):
    failed = by_flake(pure, flake, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert failed.returncode != 0
    assert "error: cannot get the locked kernel 'team/" in failed.stderr
    assert "which would fetch it, cannot be installed" in failed.stderr
    _, _, remedy = failed.stderr.partition("of the kernel:\n")
    command = next(line.partition("builder lock")[2] for line in remedy.splitlines() if "builder lock" in line)
    script = f'"$PYTHON" -m builder lock{command}\n'.replace("KEPT", str(tmp_path / "kept"))
    env = {**os.environ, **here(tmp_path), "PYTHON": sys.executable, "PYTHONPATH": str(nix_tools.ROOT)}
    brought = subprocess.run(["sh", "-ec", script], env=env, cwd=pure, capture_output=True, text=True, check=False)
    assert brought.returncode == 0, brought.stderr
    assert outcome(by_flake(pure, flake)) == "loaded"


@pytest.fixture
def links(tmp_path):
    """The hub's own library and what it needs, in a folder."""
    folder = tmp_path / "links"
    python = next(iter(nix_tools.HOST["pythons"].values()))
    words = ("-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", folder, "huggingface-hub")
    done = subprocess.run([python, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"huggingface-hub cannot be downloaded: {done.stderr.strip()[-200:]}")
    return folder


def test_a_flake_fetches_locked_kernels_from_the_hub_and_nix_checks_them(pure, flake, links, tmp_path):
    kernels = {}
    for repository in ("low", "base"):
        (snapshot,) = (tmp_path / f"hub/kernels--team--{repository}/snapshots").iterdir()
        files = [path for path in snapshot.rglob("*") if path.is_file()]
        contents = {path.relative_to(snapshot).as_posix(): path.read_bytes() for path in files}
        kernels[f"team/{repository}"] = snapshot.name, contents
    readme = kernels["team/base"][1].pop("README.md")
    shown = ("--option", "extra-sandbox-paths", f"{' '.join(nix_tools.HOST['sandbox-paths'])} {links}")
    with kernel_hub.serving(kernels) as address:
        settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links), "HF_ENDPOINT": address, "NO_PROXY": "127.0.0.1"}
        wrong = by_flake(pure, flake, *shown, **settings)
        assert wrong.returncode != 0
        assert "hash mismatch in fixed-output derivation" in wrong.stderr
        kernels["team/base"][1]["README.md"] = readme
        assert outcome(by_flake(pure, flake, *shown, **settings)) == "loaded"
        del kernels["team/base"]
    assert outcome(by_flake(pure, flake)) == "loaded"
