"""A kernel is built and loaded that is linked to parts of the CUDA toolkit which few kernels need; needs the pins."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.given.kernels import linux
from tests.paths import ROOT

CLASSIC = ROOT / "tests/data/kernels/classic"
VARIANT = "torch213-cxx11-cu130-x86_64-linux"
LIBRARIES = ("nvrtc", "curand", "cufft", "nvjpeg", "cublasLt")
BINDING = """
#include <cublasLt.h>
#include <cufft.h>
#include <curand.h>
#include <nvjpeg.h>
#include <nvrtc.h>

extern "C" __attribute__((visibility("default"))) int versions() {
  int major = 0, minor = 0, random = 0, fourier = 0;
  nvjpegHandle_t images = nullptr;
  return nvrtcVersion(&major, &minor) + curandGetVersion(&random) + cufftGetVersion(&fourier)
         + nvjpegDestroy(images) + static_cast<int>(cublasLtGetVersion());
}
"""

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.cmake,
    linux,
]


def test_a_kernel_is_built_with_the_parts_of_the_toolkit_that_it_is_linked_to(build, tmp_path):
    kernel = Path(shutil.copytree(CLASSIC, tmp_path / "classic"))
    config = kernel / "build.toml"
    config.write_text(config.read_text().replace("[torch]\n", f"[torch]\nlibraries = {json.dumps(LIBRARIES)}\n"))
    with (kernel / "torch-ext/torch_binding.cpp").open("a") as binding:
        binding.write(BINDING)
    result, _ = build(kernel, "--variant", VARIANT)
    with zipfile.ZipFile(tmp_path / result["wheel"]) as wheel:
        library = next(wheel.read(name) for name in wheel.namelist() if name.endswith(".so"))
    assert all(f"lib{name}.so.".encode() in library for name in LIBRARIES)
