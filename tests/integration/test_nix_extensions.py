"""A kernel of two libraries through Nix: the same file as from the local engine, also file by file."""

import json
import secrets
import zipfile

import pytest

from tests.given.files import only_wheel, sha256
from tests.given.kernels import TINY_CELL as STABLE
from tests.integration import nix_tools
from tests.integration.test_extensions import KERNELS, write

builder = nix_tools.builder

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
]


@pytest.fixture
def pair(tmp_path):
    """A kernel that no store has, in a folder with a space."""
    files, torch, init = KERNELS["stable"]
    salt = f"// {secrets.token_hex(16)}\n"
    write(tmp_path / "a pair", {path: salt + text for path, text in files.items()}, torch, init)
    return tmp_path / "a pair"


def test_two_libraries_are_the_same_file_from_nix_and_from_the_local_engine(builder, pair, tmp_path):
    told = builder(pair, "--variant", STABLE, "--output", tmp_path / "nix", "--json", check=0).stdout
    builder(pair, "--variant", STABLE, "--per-file", "--output", tmp_path / "files", check=0)
    builder(pair, "--variant", STABLE, "--output", tmp_path / "local", engine=(), check=0)
    assert {sha256(only_wheel(tmp_path / name)) for name in ("nix", "files", "local")} == {
        sha256(only_wheel(tmp_path / "nix"))
    }
    ops = json.loads(told)[0]["report"]["load-test"]["ops"]
    assert sorted({name.partition("::")[0].partition(".")[0].rpartition("_")[0] for name in ops}) == [
        "_pair_cpu",
        "_pair_half_cpu",
    ]
    names = zipfile.ZipFile(only_wheel(tmp_path / "nix")).namelist()
    assert len([name for name in names if name.endswith(".so")]) == 2
