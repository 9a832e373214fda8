"""For another torch, what includes nothing of torch is not compiled again; takes two environments for CUDA."""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

CLASSIC = ROOT / "tests/data/kernels/classic"
PLAIN = """\
#include <cuda_fp16.h>

__global__ void plain(float *data) { data[threadIdx.x] = __half2float(__float2half(data[threadIdx.x])); }
"""

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture
def kernel(tmp_path):
    """A kernel that no cache has, with a source that includes torch's headers, and one that does not."""
    root = Path(shutil.copytree(CLASSIC, tmp_path / "classic"))
    (root / "csrc/plain.cu").write_text(PLAIN)
    config = root / "build.toml"
    config.write_text(config.read_text().replace('"csrc/twice.cu", ', '"csrc/twice.cu", "csrc/plain.cu", '))
    for name in ("csrc/plain.cu", "csrc/twice.cu", "torch-ext/torch_binding.cpp"):
        (root / name).write_text(f"// {secrets.token_hex(16)}\n{(root / name).read_text()}")
    return root


def build(kernel, store, torch, *options):
    """Build for a torch; return the digest of the wheel, and the sources that were compiled."""
    variant = f"torch{torch}-cxx11-cu130-x86_64-linux"
    done = subprocess.run(
        [sys.executable, "-m", "builder", "build", kernel, "--variant", variant, "--json", "--rebuild", *options],
        env={**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)},
        cwd=kernel.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    files = [file for file in result["report"]["files"] if "cache" not in file]
    return result["sha256"], {
        found[1] for file in files if (found := re.search(r"\.dir/((?:csrc|torch-ext)/.*)\.o$", file["output"]))
    }


def test_for_another_torch_only_what_includes_torch_is_compiled_again(kernel, store):
    binding, kernels = "torch-ext/torch_binding.cpp", {"csrc/twice.cu", "csrc/plain.cu"}
    assert build(kernel, store, "213")[1] == {binding, *kernels}
    digest, compiled = build(kernel, store, "212")
    assert compiled == {binding, "csrc/twice.cu"}
    assert digest == build(kernel, store, "212", "--no-cache")[0]
