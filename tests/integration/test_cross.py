"""Wheels for aarch64 built on x86_64: the machine of the library, the audit, and what is said of the load test."""

import json
import zipfile

import pytest

from builder import cli, toolchain
from builder.binary.extension import Extension
from tests import needs
from tests.paths import ROOT

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.network,
    pytest.mark.slow,
    needs.only_with("aarch64-linux-gnu-g++"),
    pytest.mark.skipif(toolchain.system() != "x86_64-linux", reason="a machine of aarch64 compiles this by itself"),
]


def build(tmp_path, kernel, *options):
    given = ("--system", "aarch64-linux", "--backend", "cpu", "--output", str(tmp_path / "dist"), "--json", "-q")
    assert cli.run(["build", str(kernel), *given, *options]) == 0
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    return wheel


def test_a_wheel_for_aarch64_is_built_and_audited_here_and_says_that_it_was_not_loaded(tmp_path, monkeypatch):
    monkeypatch.delenv("QEMU_LD_PREFIX", raising=False)
    wheel = build(tmp_path, ROOT / "examples/relu-tvm-ffi", "--store", str(tmp_path / "store"))
    assert wheel.name.endswith("manylinux_2_28_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        library = Extension.read(name, archive.read(name))
    assert library.machine == "aarch64"
    record = json.loads(wheel.with_name(f"{wheel.name}.record.json").read_text())
    assert record["load-test"]["outcome"] == "not-tested"
    assert record["load-test"]["reason"].startswith("it was compiled on x86_64-linux, where ")
