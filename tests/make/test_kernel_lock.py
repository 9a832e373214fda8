"""`kernels.lock` in the form of the public tools, and the variant of a locked kernel that a load test has."""

import json

import pytest
from kernels import _rust as client

from builder.config.v5 import KernelDependency
from builder.make import kernel_lock
from builder.make.kernel_lock import LockedCommit
from tests.given.cells import cell_in
from tests.paths import ROOT

HASH = f"sha256-{'A' * 43}="
LOCKS = {
    KernelDependency(repo_id="b/c", revision="main"): LockedCommit(commit="b" * 40, hash=HASH),
    KernelDependency(repo_id="b/c", version=10): LockedCommit(commit="a" * 64, hash=HASH),
    KernelDependency(repo_id="b/c", version=2): LockedCommit(commit="a" * 40, hash=HASH),
    KernelDependency(repo_id="B/c", version=0): LockedCommit(commit="0" * 40, hash=HASH),
    KernelDependency(repo_id="b/c", revision="Main"): LockedCommit(commit="c" * 40, hash=HASH),
}
ENTRY = {"dependency": {"repo-id": "a/b", "version": 1}, "lock": {"commit": "a" * 40, "hash": HASH}}


def changed(**given):
    return [{name: {**ENTRY[name], **given.get(name, {})} for name in ENTRY}]


def test_the_public_client_reads_it_and_writes_the_same_text():
    text = kernel_lock.dump(LOCKS).decode()
    read = client.NixKernelLocks.from_json(text)
    assert len(read) == len(LOCKS)
    assert read.to_json() + "\n" == text


def test_what_was_written_is_read_back():
    assert kernel_lock.parse(kernel_lock.dump(LOCKS)) == LOCKS
    assert kernel_lock.parse(b"[]") == {}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "Expecting"),
        ("{}", "not a list"),
        ("[" * 100_000, "nested|Expecting"),
        ("[1]", "'dependency' and 'lock'"),
        (json.dumps([{**ENTRY, "more": 1}]), "'dependency' and 'lock'"),
        (json.dumps([ENTRY, ENTRY]), "'a/b' .version 1. is there twice"),
        (json.dumps(changed(dependency={"version": True})), "version of 'a/b' is not a number"),
        (json.dumps(changed(dependency={"version": -1})), "version of 'a/b' is not a number"),
        (json.dumps(changed(dependency={"repo-id": "../b"})), "'../b' is not a repository"),
        (json.dumps(changed(dependency={"revision": "x"})), "'version' or 'revision'"),
        (json.dumps(changed(lock={"commit": "main"})), "names no whole commit"),
        (json.dumps(changed(lock={"hash": None})), "no hash, which `kernels lock` leaves out"),
        (json.dumps(changed(lock={"hash": "sha256-AAAA"})), "base64 of 32 bytes"),
        (json.dumps(changed(lock={"hash": "md5-AAAA"})), "base64 of 32 bytes"),
        (json.dumps(changed(lock={"more": 1})), "'commit' and 'hash'"),
    ],
)
def test_another_text_is_refused_with_the_reason(tmp_path, content, why):
    (tmp_path / "kernels.lock").write_text(content)
    with pytest.raises(kernel_lock.LockError, match=why) as refused:
        kernel_lock.read(tmp_path)
    assert "builder lock" in refused.value.help


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "kernels.lock").write_bytes(b"\xff[")
    with pytest.raises(kernel_lock.LockError, match="not a lock of kernels"):
        kernel_lock.read(tmp_path)


def test_a_kernel_without_a_lock_has_none(tmp_path):
    assert kernel_lock.read(tmp_path) is None


LINUX = "x86_64-linux"


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        (["torch-cpu", "torch213-cxx11-cpu-x86_64-linux"], "torch213-cxx11-cpu-x86_64-linux"),
        (["torch-cpu", "torch-stable-abi210-cpu-x86_64-linux"], "torch-stable-abi210-cpu-x86_64-linux"),
        (
            ["torch-stable-abi29-cpu-x86_64-linux", "torch-stable-abi210-cpu-x86_64-linux"],
            "torch-stable-abi210-cpu-x86_64-linux",
        ),
        (["torch-cuda", "torch-cpu"], "torch-cpu"),
        (["torch-stable-abi214-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"], None),
        (["torch213-cxx11-cpu-aarch64-linux", "torch212-cxx11-cpu-x86_64-linux", "no-variant"], None),
        (["tvm-ffi01-cpu-x86_64-linux", "ctypes-cpu-x86_64-linux"], None),
        ([], None),
    ],
)
def test_a_load_test_has_the_variant_that_the_client_would_load(there, chosen):
    assert (
        kernel_lock.variant_for(cell_in(ROOT / "examples/relu", variant="torch213-cxx11-cpu-x86_64-linux"), there)
        == chosen
    )
