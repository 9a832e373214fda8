"""A kernel is built and loaded that is linked to parts of the CUDA toolkit which few kernels need; needs the pins."""

import json
import zipfile

import pytest

from tests.given.files import edit
from tests.given.kernels import linux

VARIANT = "ctypes-cu130-x86_64-linux"
LIBRARIES = ("nvrtc", "curand", "cufft", "nvjpeg", "cublasLt")
SOURCE = """
#include <cublasLt.h>
#include <cufft.h>
#include <curand.h>
#include <nvjpeg.h>
#include <nvrtc.h>

extern "C" int plain_versions() {
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


def test_a_kernel_is_built_with_the_parts_of_the_toolkit_that_it_is_linked_to(build, plain, tmp_path):
    edit(plain / "build.toml", 'libraries = ["cublas"]', f"libraries = {json.dumps(('cublas', *LIBRARIES))}")
    with (plain / "csrc/scale.cu").open("a") as source:
        source.write(SOURCE)
    result, _ = build(plain, "--variant", VARIANT)
    with zipfile.ZipFile(tmp_path / result["wheel"]) as wheel:
        library = next(wheel.read(name) for name in wheel.namelist() if name.endswith(".so"))
    assert all(f"lib{name}.so.".encode() in library for name in LIBRARIES)
