"""A kernel with a stable ABI for one backend and a classic one for the other, from its config to its wheels."""

import json
import shutil
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from builder import kernel as kernels
from builder.config import Backend
from builder.render import render
from tests.given.kernels import linux

ROOT = Path(__file__).parent.parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
CUDA_SOURCE = """
#include "twice.h"

__global__ void twice_kernel(const float *input, float *output, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) output[i] = FACTOR * input[i];
}

void twice(const float *input, float *output, int64_t n) { twice_kernel<<<1, 32>>>(input, output, n); }
"""
COMPONENT = """
[kernel.twice-cuda]
backend = "cuda"
depends = ["torch"]
cuda-capabilities = ["9.0"]
src = ["csrc/twice.cu", "csrc/twice.h"]
"""
CPU, CUDA = "torch213-cxx11-cpu-x86_64-linux", "torch-stable-abi210-cu130-x86_64-linux"


@pytest.fixture
def mixed(tmp_path):
    """Tiny for the processor, classic, and for CUDA, stable."""
    kernel = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    config = (kernel / "build.toml").read_text()
    config = config.replace('backends = ["cpu"]', 'backends = ["cpu", "cuda"]')
    config = config.replace('stable-abi = "2.10"', 'stable-abi = { cuda = "2.10" }')
    (kernel / "build.toml").write_text(config + COMPONENT)
    (kernel / "csrc/twice.cu").write_text(CUDA_SOURCE)
    binding = kernel / "torch-ext/torch_binding.cpp"
    text = binding.read_text().replace("TORCH_EXTENSION_NAME, CPU, ops", "TORCH_EXTENSION_NAME, DEVICE, ops")
    device = "#if defined(CUDA_KERNEL)\n#define DEVICE CUDA\n#else\n#define DEVICE CPU\n#endif\n"
    binding.write_text(text.replace('#include "registration.h"\n', f'#include "registration.h"\n{device}'))
    return kernel


def test_only_the_stable_backend_has_a_target(mixed):
    loaded = kernels.load(mixed)
    lists = {backend: render(loaded, backend)["CMakeLists.txt"] for backend in (Backend.CPU, Backend.CUDA)}
    assert "STABLE_ABI" in lists[Backend.CUDA]
    assert "STABLE_ABI" not in lists[Backend.CPU]


@pytest.mark.torch
@pytest.mark.cmake
@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.network
@linux
def test_each_wheel_says_and_needs_what_its_own_abi_asks_for(builder, mixed, tmp_path):
    done = builder("build", mixed, "--variant", CPU, "--variant", CUDA, "--json", check=0)
    found = {result["variant"]: tmp_path / result["wheel"] for result in json.loads(done.stdout)}
    assert "+torch213.cxx11.cpu-" in found[CPU].name
    assert "+torch.stable210.cu130-" in found[CUDA].name
    assert required(found[CPU]) == ["torch==2.13.*"]
    assert required(found[CUDA]) == ["torch>=2.10"]


@pytest.mark.cmake
@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.network
@linux
def test_device_code_that_the_plan_does_not_have_fails_the_build(builder, mixed, tmp_path):
    config = (mixed / "build.toml").read_text()
    flag = 'cuda-flags = ["-gencode=arch=compute_80,code=sm_80"]\n'
    (mixed / "build.toml").write_text(config.replace("cuda-capabilities", f"{flag}cuda-capabilities"))
    done = builder("build", mixed, "--variant", CUDA, "--allow-unsafe-flags", check=5)
    assert "it has machine code for 8.0, which the plan does not name" in done.stderr
    assert list((tmp_path / "dist").glob("*.whl")) == []


def required(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode()).get_all("Requires-Dist")
