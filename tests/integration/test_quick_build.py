"""A quick build of a CUDA kernel by the pinned nvcc, from its config to what becomes of its wheel."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.given.kernels import linux

ROOT = Path(__file__).parent.parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cu130-x86_64-linux"
SOURCE = """
#include "twice.h"

__global__ void twice_kernel(const float *input, float *output, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) output[i] = FACTOR * input[i];
}

void twice(const float *input, float *output, int64_t n) { twice_kernel<<<1, 32>>>(input, output, n); }
"""
COMPONENTS = """
[kernel.special]
backend = "cuda"
depends = ["torch"]
cuda-capabilities = ["8.0", "9.0a"]
src = ["csrc/twice.cu", "csrc/twice.h"]

[kernel.open]
backend = "cuda"
depends = []
src = ["csrc/open.cu"]
"""

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.cuda,
    pytest.mark.slow,
    pytest.mark.network,
    linux,
]


@pytest.fixture
def kernel(tmp_path):
    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    config = (folder / "build.toml").read_text()
    config = config[: config.index("[kernel.")].replace('backends = ["cpu"]', 'backends = ["cuda"]')
    (folder / "build.toml").write_text(config + COMPONENTS)
    (folder / "csrc/twice.cu").write_text(SOURCE)
    (folder / "csrc/open.cu").write_text("__global__ void open_kernel() {}\n")
    binding = folder / "torch-ext/torch_binding.cpp"
    binding.write_text(binding.read_text().replace("TORCH_EXTENSION_NAME, CPU, ops", "TORCH_EXTENSION_NAME, CUDA, ops"))
    return folder


@pytest.fixture
def made(build, kernel, tmp_path):
    """Build the kernel; return what became of it, and the wheel."""

    def run(*arguments):
        outcome, _ = build(kernel, "--variant", VARIANT, *arguments)
        return outcome["status"], tmp_path / outcome["wheel"]

    return run


def archs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read("tiny/metadata.json"))["backend"]["archs"]


def test_a_quick_wheel_has_the_code_of_its_gpu_and_is_told_apart_everywhere(builder, made, tmp_path):
    status, quick = made("--archs", "9.0")
    assert (status, archs(quick)) == ("built", ["9.0", "9.0a"])
    assert quick.name.startswith("tiny-1.0.0.dev0+torch.stable210.cu130-")
    audited = builder("audit", quick)
    assert audited.returncode == 0, audited.stdout
    assert "it is not for release: built for 9.0 alone" in audited.stdout

    status, full = made()
    assert status == "built"
    assert {"7.5", "8.0", "9.0a", "12.1+PTX"} < set(archs(full))
    assert full.name.startswith("tiny-1.0.0+torch.stable210.cu130-")
    assert made("--archs", "9.0")[0] == "hit"
    assert made() == ("hit", full)

    refused = builder("index", "dist", "--output", "site")
    assert refused.returncode == 6
    assert f"not for release: dist/{quick.name} (built for 9.0 alone)" in refused.stderr
    assert full.name not in refused.stderr
    quick.unlink()
    assert builder("index", "dist", "--output", "site").returncode == 0
    assert builder("publish", "site", tmp_path / "www").returncode == 0


def test_a_gpu_that_a_component_has_no_code_for_is_refused_before_anything_is_compiled(builder, kernel):
    done = builder("build", kernel, "--variant", VARIANT, "--archs", "12.0")
    assert done.returncode == 2
    assert f"error: {VARIANT}: component 'special' has no code for 12.0 with CUDA 13.0\n" in done.stderr
    assert "help: 'special' has 8.0, 9.0a" in done.stderr
