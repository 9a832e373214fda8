"""Wheels for one family of GPUs: real device code split by architecture, and what pip and uv take of it."""

import ctypes
import hashlib
import subprocess
import sys

import pytest

from builder.binary import device_code
from builder.binary import fatbin as fat_binaries
from builder.binary.extension import Extension
from builder.cli import run
from builder.matrix.variant import Variant
from builder.publish import families
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes
from tests import hostile
from tests.audit import nvidia
from tests.audit.test_devices import gencode
from tests.given.device_code import fatbin, image
from tests.given.processes import output
from tests.integration.test_index import clean_environ, environment, installed, pip, served, uv
from tests.wheels import make, package

CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
ARCHS = ("7.5", "8.0", "8.6", "9.0", "9.0a", "10.0", "10.3", "12.0+PTX")
SOURCE = """
template <int N> __global__ void kernel_{number}(float *x) {{
  for (int i = 0; i < {number} * N; ++i) x[threadIdx.x] = x[threadIdx.x] * {number}.5f + sinf(x[i]);
}}
extern "C" int run_{number}(float *x) {{ kernel_{number}<3><<<1, 32>>>(x); return cudaGetLastError(); }}
"""
LOADS = """
import ctypes
from pathlib import Path
library = ctypes.CDLL(str(Path(__file__).with_name("_demo.abi3.so")))  # registers each fat binary
"""
CLIENT = """
import json, sys
from pathlib import Path
import torch
torch.version.cuda = "13.0"  # what the client asks; a torch for the CPU does for the rest
from kernels import get_local_kernel
kernel = get_local_kernel(Path(sys.argv[1]), backend="cuda")
assert kernel.library.run_1 and kernel.library.run_2
said = json.loads(Path(kernel.__file__).with_name("metadata.json").read_text())
print(f"{kernel.library._name}: {' '.join(said['backend']['archs'])}")
"""
MODES = {
    "not compressed": ("--compress-mode=none",),
    "Zstandard": ("--compress-mode=size",),
    "LZ4": ("--compress-mode=speed", "-Xfatbin=-compress-all"),
}


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory):
    return nvidia.tool("cuobjdump", "nvidia-cuda-cuobjdump", tmp_path_factory.mktemp("cuobjdump"))


@pytest.fixture(scope="module", params=MODES.values(), ids=MODES)
def library(request, tmp_path_factory):
    """Compile two sources for eight capabilities, and link them."""
    folder = tmp_path_factory.mktemp("library")
    tool = nvidia.nvcc()
    for number in (1, 2):
        source = folder / f"f{number}.cu"
        source.write_text(SOURCE.format(number=number))
        options = ("-Xcompiler", "-fPIC", *gencode(ARCHS), *request.param)
        output(tool, "-c", *options, "-o", source.with_suffix(".o"), source)
    runtime = tool.parent.parent / "lib64"
    link = ("-o", folder / "a.so", f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lcudart")
    output("g++", "-shared", folder / "f1.o", folder / "f2.o", *link)
    return folder / "a.so"


def taken_out(tool, library, folder):
    """Return what NVIDIA's own reader takes out of a library: each cubin and PTX, unpacked."""
    folder.mkdir()
    output(tool, "-xelf", "all", library, cwd=folder)
    output(tool, "-xptx", "all", library, cwd=folder)
    return {
        (path.suffixes[-2], path.suffix, hashlib.sha256(path.read_bytes()).hexdigest()) for path in folder.iterdir()
    }


@pytest.mark.cuda
@pytest.mark.network
def test_splitting_and_joining_loses_nothing_as_nvidias_reader_sees_it(cuobjdump, library, tmp_path):
    more = {"_demo.abi3.so": Bytes(library.read_bytes(), mode=0o755)}
    path = make(tmp_path, "demo", CUDA, files=package("demo", CUDA, archs=list(ARCHS), more=more))
    whole = taken_out(cuobjdump, library, tmp_path / "whole")
    assert len(whole) == 2 * (len(ARCHS) + 1)
    entries = set(fat_binaries.entries("a.so", library.read_bytes()))
    joined, joined_entries = set(), set()
    for family, made in families.split(kernel_wheel.read(path)):
        place = tmp_path / made.name
        place.write_bytes(made.content)
        read = kernel_wheel.read(place)
        part = tmp_path / f"{family}.so"
        part.write_bytes(read.package["_demo.abi3.so"].read())
        found = taken_out(cuobjdump, part, tmp_path / str(family))
        assert found
        joined |= found
        joined_entries |= set(fat_binaries.entries("a.so", part.read_bytes()))
        assert (found | whole) == whole
        Extension.read("a.so", part.read_bytes())
        loaded = ctypes.CDLL(str(part))  # registers each fat binary
        assert loaded.run_1
        assert loaded.run_2
        assert len(made.content) < path.stat().st_size
    assert joined == whole
    assert joined_entries == entries


@pytest.mark.cuda
@pytest.mark.torch
def test_the_public_client_loads_the_wheel_of_a_family(library, tmp_path):
    more = {"_demo.abi3.so": Bytes(library.read_bytes(), mode=0o755)}
    path = make(tmp_path, "demo", CUDA, files=package("demo", CUDA, content=LOADS, archs=list(ARCHS), more=more))
    assert run(["split", str(path), "--output", str(tmp_path / "made")]) == 0
    (hopper,) = (tmp_path / "made/sm90").iterdir()
    assert run(["bundle", str(hopper), "--output", str(tmp_path / "repository/build")]) == 0
    environ = clean_environ(tmp_path) | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", CLIENT, str(tmp_path / "repository")]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded, _, archs = done.stdout.strip().partition(": ")
    assert loaded == str(tmp_path / "repository/build" / str(CUDA) / "_demo.abi3.so")
    assert archs == "9.0 9.0a"


@pytest.fixture
def wheel(tmp_path):
    dist = tmp_path / "dist"
    dist.mkdir()
    code = fatbin(image(2, 80, content=b"a" * 5000), image(2, 90, content=b"h" * 5000))
    more = {"_relu.abi3.so": Bytes(hostile.elf({"code": code}))}
    files = package("relu", CUDA, content="variant = __file__\n", archs=["8.0", "9.0"], more=more)
    return make(dist, "relu", CUDA, requires=["torch==2.13.*"], files=files)


@pytest.mark.slow
@pytest.mark.parametrize("installer", [pip, uv])
def test_an_installer_takes_the_wheel_of_the_family_and_downloads_no_other(installer, wheel, tmp_path):
    assert run(["index", str(wheel.parent), "--output", str(tmp_path / "site"), "--families"]) == 0
    python = environment(tmp_path / "venv", pip=installer is pip)
    with served(tmp_path / "site") as (address, requests):
        command = [*installer(python), "--index-url", f"{address}/for/torch213-cu130-sm90/simple/", "relu"]
        done = subprocess.run(command, env=clean_environ(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name = "relu-1.0.0%2Btorch213.cxx11.cu130-90sm-cp39-abi3-manylinux_2_28_x86_64.whl"
    assert {path for path in requests if path.endswith(".whl")} == {f"/files/families/{name}"}
    place = installed(python, tmp_path)
    (info,) = (tmp_path / "venv").glob("lib/python*/site-packages/relu-1.0.0*.dist-info")
    assert "Build: 90sm" in (info / "WHEEL").read_text()
    assert place.startswith(str(info.parent))
    code = device_code.read("a.so", (info.parent / "relu/_relu.abi3.so").read_bytes())
    assert {each.arch for each in code} == {"9.0"}


def test_a_wheel_of_a_family_is_laid_out_for_the_client_as_any_other(wheel, tmp_path):
    assert run(["split", str(wheel), "--output", str(tmp_path / "made")]) == 0
    (hopper,) = (tmp_path / "made/sm90").iterdir()
    assert run(["bundle", str(hopper), "--output", str(tmp_path / "build")]) == 0
    assert [path.name for path in (tmp_path / "build").iterdir() if path.is_dir()] == [str(CUDA)]
    library = (tmp_path / "build" / str(CUDA) / "_relu.abi3.so").read_bytes()
    assert {each.arch for each in device_code.read("a.so", library)} == {"9.0"}
