"""The pinned compilers in Nix's sandbox: the wheel is that of the local engine, at once, by file, and for aarch64."""

import json

import pytest

from builder.environment import compilers
from tests.given.kernels import PLAIN_CELL
from tests.integration import nix_tools
from tests.paths import ROOT

builder, plain = nix_tools.builder, nix_tools.plain
KERNEL = ROOT / "examples/relu-tvm-ffi"
PINNED = ("--variant", PLAIN_CELL, "--toolchain", "pinned")

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
    pytest.mark.skipif("x86_64-linux" not in compilers.pinned(), reason="the pinned compilers run on x86_64-linux"),
]


def require_fetched(built):
    """Skip where the packages of Debian cannot be fetched, which is no fault of the build; any other failure is one."""
    if "cannot fetch" in built.stderr or "no mirror of Debian" in built.stderr:
        pytest.skip(f"the packages of Debian cannot be fetched: {built.stderr}")
    assert built.returncode == 0, built.stderr


@pytest.mark.parametrize("backend", ["cpu", pytest.param("cu130", marks=pytest.mark.cuda)])
def test_a_wheel_for_aarch64_is_the_same_file_from_nix_and_from_the_local_engine(builder, tmp_path, backend):
    cell = ("--variant", f"tvm-ffi01-{backend}-aarch64-linux", "--toolchain", "pinned")
    quick = () if backend == "cpu" else ("--archs", "9.0a")
    local = builder(KERNEL, *cell, *quick, "--output", tmp_path / "local", engine=())
    require_fetched(local)
    builder(KERNEL, *cell, *quick, "--output", tmp_path / "nix", check=0)
    builder(KERNEL, *cell, *quick, "--output", tmp_path / "files", "--per-file", check=0)
    wheels = [next((tmp_path / name).glob("*_aarch64.whl")) for name in ("local", "nix", "files")]
    assert len({wheel.read_bytes() for wheel in wheels}) == 1
    record = json.loads(wheels[1].with_name(f"{wheels[1].name}.record.json").read_text())
    assert record["load-test"]["outcome"] == "not-tested"


def test_without_the_pinned_compilers_nix_names_what_compiles_for_aarch64(builder, tmp_path):
    done = builder(KERNEL, "--variant", "tvm-ffi01-cpu-aarch64-linux", "--output", tmp_path / "none")
    assert done.returncode == 4
    assert "where --toolchain pinned compiles it" in done.stderr


def test_a_wheel_of_pinned_compilers_is_the_same_file_from_nix_and_from_the_local_engine(builder, plain, tmp_path):
    local = builder(plain, *PINNED, "--output", tmp_path / "local", engine=())
    require_fetched(local)
    builder(plain, *PINNED, "--output", tmp_path / "nix", check=0)
    builder(plain, *PINNED, "--output", tmp_path / "files", "--per-file", check=0)
    builder(plain, "--variant", PLAIN_CELL, "--output", tmp_path / "other", check=0)
    found = {name: next((tmp_path / name).glob("*.whl")).read_bytes() for name in ("local", "nix", "files", "other")}
    assert found["nix"] == found["local"]
    assert found["files"] == found["local"]
    assert found["other"] != found["local"]  # metadata.json names this machine's compilers
