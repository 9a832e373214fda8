"""A quick build of a CUDA kernel by the pinned nvcc, from its config to what becomes of its wheel."""

import json
import zipfile

import pytest

from tests.given.kernels import linux

VARIANT = "ctypes-cu130-x86_64-linux"
COMPONENTS = """
[kernel.special]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "9.0a"]
src = ["csrc/special.cu"]

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
def kernel(plain):
    config = (plain / "build.toml").read_text()
    config = config[: config.index("[kernel.")].replace('backends = ["cpu", "cuda"]', 'backends = ["cuda"]')
    config = config.replace('backend-exports = { cuda = ["last_error"] }\n', "").replace('"plain_*", ', "")
    (plain / "build.toml").write_text(config + COMPONENTS)
    for name in ("special", "open"):
        (plain / f"csrc/{name}.cu").write_text(f"__global__ void {name}_kernel() {{}}\n")
    return plain


@pytest.fixture
def made(build, kernel, tmp_path):
    """Build the kernel; return what became of it, and the wheel."""

    def run(*arguments):
        outcome, _ = build(kernel, "--variant", VARIANT, *arguments)
        return outcome["status"], tmp_path / outcome["wheel"]

    return run


def archs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read("plain/metadata.json"))["backend"]["archs"]


def test_a_quick_wheel_has_the_code_of_its_gpu_and_is_told_apart_everywhere(builder, made, tmp_path):
    status, quick = made("--archs", "9.0")
    assert (status, archs(quick)) == ("built", ["9.0", "9.0a"])
    assert quick.name.startswith("plain-1.0.0.dev0+ctypes.cu130-")
    audited = builder("audit", quick)
    assert audited.returncode == 0, audited.stdout
    assert "it is not for release: built for 9.0 alone" in audited.stdout

    status, full = made()
    assert status == "built"
    assert {"7.5", "8.0", "9.0a", "12.1+PTX"} < set(archs(full))
    assert full.name.startswith("plain-1.0.0+ctypes.cu130-")
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
