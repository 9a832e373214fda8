"""Nix reads a lock of kernels as the local engine does: the same entries, folders and mistakes."""

import base64
import json
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.config.v5 import KernelDependency
from builder.make import kernel_lock
from builder.make.job import Spec
from builder.make.kernel_lock import LockedCommit, LockError
from tests import hub_folder, needs
from tests.cli.folders import write
from tests.nix.evaluating import TINY, TINY_CELL, library

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]

BASE = KernelDependency(repo_id="team/base", version=1)
LOW = KernelDependency(repo_id="team/low", revision="main")
COMMIT = "0123456789" * 4


def sri(raw):
    return "sha256-" + base64.b64encode(raw).decode()


LOCKS = {
    BASE: LockedCommit(commit=COMMIT, hash=sri(bytes(range(32)))),
    LOW: LockedCommit(commit=COMMIT, hash=sri(bytes(range(224, 256)))),
}


@pytest.fixture
def user(tmp_path):
    return hub_folder.depend(write(tmp_path, "user", "cpu", "cuda"), "team/base")


def locked(user, locks=LOCKS):
    (user / "kernels.lock").write_bytes(kernel_lock.dump(locks))
    return user


def specs(user, *variants, **options):
    texts = library("specs", kernel=str(user), variants=variants, options=options)
    return [Spec.from_json(text) for text in texts], texts


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(raw=st.lists(st.binary(min_size=32, max_size=32), min_size=20, max_size=20, unique=True))
def test_nix_reads_any_hash_as_the_store_names_its_folder(user, raw):
    locks = {
        KernelDependency(repo_id="team/base", version=number): LockedCommit(commit=COMMIT, hash=sri(each))
        for number, each in enumerate(raw)
    }
    found = library("lockedKernels", kernel=str(locked(user, locks)))
    assert [each["name"] for each in found] == [each.digest for each in locks.values()]


def test_a_tree_is_where_nix_puts_the_folder_of_the_store_by_hand(user):
    found = library("lockedKernels", kernel=str(locked(user)))
    for each, commit in zip(found, LOCKS.values(), strict=True):
        asked = ["nix-store", "--print-fixed-path", "--recursive", "sha256", commit.digest, commit.digest]
        path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        assert each["path"] == path


def test_the_spec_of_a_cell_has_the_lock_that_python_reads(user):
    (spec,), (text,) = specs(locked(user), "torch-cpu")
    assert {wanted: tree.locked for wanted, tree in spec.kernels.items()} == kernel_lock.read(user) == LOCKS
    assert [str(tree.folder) for tree in spec.kernels.values()] == [
        each["path"] for each in library("lockedKernels", kernel=str(user))
    ]
    assert json.loads(spec.to_json()) == json.loads(text)


def test_a_cell_that_loads_no_locked_kernels_has_none_of_the_lock(user):
    assert specs(user, "torch-cpu")[0][0].kernels is None  # there is no lock
    assert specs(locked(user, {}), "torch-cpu")[0][0].kernels == {}
    assert specs(locked(user), "torch-cpu", **{"load-test": "skip"})[0][0].kernels is None
    config = user / "build.toml"
    table = config.read_text(encoding="utf-8").partition("\n[torch-noarch]")[0]
    moved = table.replace('kernel-depends = [{ repo-id = "team/base", version = 1 }]\n', "")
    own = '\n[general.cuda]\nkernel-depends = [{ repo-id = "team/base", version = 1 }]\n\n[torch-noarch]\n'
    config.write_text(moved + own, encoding="utf-8")
    cpu, cuda = specs(user, "torch-cpu", "torch-cuda")[0]
    assert cpu.kernels is None
    assert cuda.kernels.keys() == LOCKS.keys()


def test_another_lock_changes_the_cell_and_none_of_its_compiled_files(tmp_path):
    tiny = hub_folder.depend(shutil.copytree(TINY, tmp_path / "tiny"), "team/base")
    before = library("objects", kernel=str(locked(tiny)), variant=TINY_CELL)
    after = library("objects", kernel=str(locked(tiny, {BASE: LOCKS[LOW]})), variant=TINY_CELL)
    assert after["files"] == before["files"]
    assert after["cell"] != before["cell"]


ENTRY = {"dependency": {"repo-id": "team/base", "version": 1}, "lock": {"commit": COMMIT, "hash": sri(bytes(32))}}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        pytest.param({}, "it is not a list", id="no list"),
        pytest.param([1], "an entry has not the keys", id="no entry"),
        pytest.param([{"lock": ENTRY["lock"]}], "an entry has not the keys", id="half an entry"),
        pytest.param([{**ENTRY, "dependency": {}}], "a dependency has n", id="no repository"),
        pytest.param([{**ENTRY, "lock": {"commit": "v1"}}], "names no whole commit", id="a branch"),
        pytest.param([{**ENTRY, "lock": {"commit": 1}}], "names no whole commit", id="a number"),
        pytest.param(
            [{**ENTRY, "lock": {"commit": COMMIT, "hash": "sha256-AAAA"}}], "the base64 of 32 bytes", id="a short hash"
        ),
        pytest.param(
            [{**ENTRY, "lock": {"commit": COMMIT, "hash": f"sha512-{'A' * 43}="}}],
            "the base64 of 32 bytes",
            id="another kind of hash",
        ),
    ],
)
def test_a_lock_that_python_refuses_is_refused_by_nix_with_the_same_words(user, entries, said):
    (user / "kernels.lock").write_text(json.dumps(entries), encoding="utf-8")
    with pytest.raises(LockError) as refused:
        kernel_lock.read(user)
    assert said in refused.value.message
    with pytest.raises(ValueError, match="is not a lock of kernels: ") as failed:
        library("specs", kernel=str(user), variants=["torch-cpu"], options={})
    assert said in str(failed.value)
    assert "write it anew: builder lock" in str(failed.value)
