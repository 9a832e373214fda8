"""A plain library, from its config to a wheel that a Python without any framework loads."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder.cli import run as command
from tests.given.files import edit
from tests.given.kernels import PLAIN, PLAIN_CELL, linux

CALL = "import plain, sys; print(plain.answer(), plain.scale([1, 2], 2.5), 'torch' in sys.modules)"

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.network,
    pytest.mark.slow,
    linux,
]


def test_a_wheel_is_built_audited_and_called_without_torch(build, tmp_path, capsys):
    result, _ = build(PLAIN, "--variant", PLAIN_CELL)
    wheel = tmp_path / "dist" / Path(result["wheel"]).name
    assert wheel.name == "plain-1.0.0+ctypes.cpu-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert b"Requires-Dist" not in archive.read("plain-1.0.0+ctypes.cpu.dist-info/METADATA")
        archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-S", "-c", CALL],
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "42 [2.5, 5.0] False\n", done.stderr
    record = json.loads((wheel.parent / f"{wheel.name}.record.json").read_text(encoding="utf-8"))
    assert record["load-test"]["outcome"] == "loaded"
    assert record["load-test"]["ops"] == {"answer": ["C"], "plain_scale": ["C"]}
    assert command(["audit", str(wheel)]) == 0
    assert command(["index", str(wheel.parent), "--output", str(tmp_path / "site-index")]) == 0
    capsys.readouterr()
    assert command(["bundle", str(wheel), "--output", str(tmp_path / "hub")]) == 2
    assert "is a plain library, but the client of the hub" in capsys.readouterr().err
    assert not (tmp_path / "hub").exists()
    again, _ = build(PLAIN, "--variant", PLAIN_CELL)
    assert again["status"] == "hit"


def test_a_function_that_no_source_defines_is_a_finding_of_the_audit(build, plain):
    edit(plain / "build.toml", '"answer"]', '"answer", "question"]')
    result, said = build(plain, "--variant", PLAIN_CELL, check=5)
    assert "it exports no function of this name" in said
    assert "question" in said
    assert result["variant"] == PLAIN_CELL


def test_a_package_that_imports_torch_without_saying_so_is_refused_before_anything_is_compiled(build, plain):
    edit(plain / "ctypes-ext/plain/__init__.py", "import ctypes\n", "import ctypes\n\nimport torch\n")
    result, said = build(plain, "--variant", PLAIN_CELL, check=5)
    assert "the module 'torch' is not declared" in said
    assert "name the package that has 'torch' in 'requires' of [wheel]" in said
    assert result["log"] is None or "Building CXX" not in Path(result["log"]).read_text(encoding="utf-8")


@pytest.mark.cuda
def test_a_library_for_cuda_is_built_by_the_pinned_nvcc_and_requires_its_runtime(build, tmp_path):
    variant = "ctypes-cu130-x86_64-linux"
    result, _ = build(PLAIN, "--variant", variant)
    wheel = tmp_path / "dist" / Path(result["wheel"]).name
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read("plain-1.0.0+ctypes.cu130.dist-info/METADATA").decode()
    required = [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert required == ["nvidia-cuda-runtime>=13,<14", "nvidia-cublas>=13,<14"]
    record = json.loads((wheel.parent / f"{wheel.name}.record.json").read_text(encoding="utf-8"))
    assert set(record["load-test"]["ops"]) == {"answer", "last_error", "plain_scale", "plain_version"}
    assert command(["audit", str(wheel)]) == 0
