"""The pinned compilers in Nix's sandbox: the wheel is that of the local engine, at once and file by file."""

import pytest

from builder.environment import compilers
from tests.integration import nix_tools

builder, tiny = nix_tools.builder, nix_tools.tiny
STABLE = "torch-stable-abi210-cpu-x86_64-linux"
PINNED = ("--variant", STABLE, "--toolchain", "pinned")

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
    pytest.mark.skipif("x86_64-linux" not in compilers.pinned(), reason="the pinned compilers run on x86_64-linux"),
]


def test_a_wheel_of_pinned_compilers_is_the_same_file_from_nix_and_from_the_local_engine(builder, tiny, tmp_path):
    local = builder(tiny, *PINNED, "--output", tmp_path / "local", engine=())
    if "cannot fetch" in local.stderr or "no mirror of Debian" in local.stderr:
        pytest.skip(local.stderr)
    assert local.returncode == 0, local.stderr
    builder(tiny, *PINNED, "--output", tmp_path / "nix", check=0)
    builder(tiny, *PINNED, "--output", tmp_path / "files", "--per-file", check=0)
    builder(tiny, "--variant", STABLE, "--output", tmp_path / "other", check=0)
    found = {name: next((tmp_path / name).glob("*.whl")).read_bytes() for name in ("local", "nix", "files", "other")}
    assert found["nix"] == found["local"]
    assert found["files"] == found["local"]
    assert found["other"] != found["local"]  # metadata.json names this machine's compilers
