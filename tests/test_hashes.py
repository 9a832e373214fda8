"""The hash of a folder is the one that Nix computes."""

import os
import subprocess

import pytest

from builder import hashes
from builder.errors import ToolError
from tests import needs


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "kernel"
    (root / "build/torch-cpu").mkdir(parents=True)
    (root / "build/torch-cpu/__init__.py").write_text("answer = 42\n")
    (root / "build/empty").mkdir()
    (root / "build-2").write_bytes(b"")
    (root / "ä").write_bytes(bytes(range(256)) * 9)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    return root


def test_it_is_the_hash_of_nix(folder):
    command = [
        needs.program("nix"),
        "--extra-experimental-features",
        "nix-command",
        "hash",
        "path",
        "--sri",
        str(folder),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert hashes.nar(folder) == done.stdout.strip()


def test_it_says_nothing_of_times_and_owners_and_all_of_content_names_and_modes(folder):
    before = hashes.nar(folder)
    assert before == "sha256-2TH37ZpBfPuI0EBEgjkm4izi2KdOtT4L7kC4XA4hqbs="
    (folder / "run").chmod(0o700)
    os.utime(folder / "run", (1, 1))
    assert hashes.nar(folder) == before
    found = {before}
    (folder / "run").chmod(0o644)
    found.add(hashes.nar(folder))
    (folder / "run").rename(folder / "walk")
    found.add(hashes.nar(folder))
    (folder / "walk").write_text("#!/bin/ed\n")
    found.add(hashes.nar(folder))
    (folder / "build/empty").rmdir()
    found.add(hashes.nar(folder))
    assert len(found) == 5


def test_a_link_is_refused(folder):
    (folder / "link").symlink_to("run")
    with pytest.raises(ToolError, match=r"'.*link' is neither a file nor a folder"):
        hashes.nar(folder)
