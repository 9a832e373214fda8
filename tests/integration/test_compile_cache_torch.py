"""For another torch, what includes nothing of torch is not compiled again; takes two environments for CUDA."""

import re
import secrets
import shutil
from pathlib import Path

import pytest

from tests.given.kernels import linux
from tests.paths import ROOT

CLASSIC = ROOT / "tests/data/kernels/classic"
REBUILD = ("--rebuild", "--load-test", "skip")
PLAIN = """\
#include <cuda_fp16.h>

__global__ void plain(float *data) { data[threadIdx.x] = __half2float(__float2half(data[threadIdx.x])); }
"""

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.cmake,
    linux,
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


@pytest.fixture
def for_torch(build, kernel):
    """Build for a torch; return the digest of the wheel, and the sources that were compiled."""

    def run(torch, *options):
        result, _ = build(kernel, "--variant", f"torch{torch}-cxx11-cu130-x86_64-linux", *REBUILD, *options)
        outputs = [file["output"] for file in result["report"]["files"] if "cache" not in file]
        found = [re.search(r"\.dir/((?:csrc|torch-ext)/.*)\.o$", output) for output in outputs]
        return result["sha256"], {each[1] for each in found if each}

    return run


def test_for_another_torch_only_what_includes_torch_is_compiled_again(for_torch):
    binding, kernels = "torch-ext/torch_binding.cpp", {"csrc/twice.cu", "csrc/plain.cu"}
    assert for_torch("213")[1] == {binding, *kernels}
    digest, compiled = for_torch("212")
    assert compiled == {binding, "csrc/twice.cu"}
    assert digest == for_torch("212", "--no-cache")[0]
