"""tvm-ffi: built without torch, loaded by tvm-ffi and by the public client, called with arrays of several libraries."""

import json
import shutil
import sys
import zipfile
from importlib.util import find_spec

import pytest

from tests.integration import rendered

pytestmark = [pytest.mark.cmake, pytest.mark.network, pytest.mark.slow]
EXAMPLE = rendered.EXAMPLES / "relu-tvm-ffi"
CALL = """
import numpy as np, relu_tvm_ffi, sys, tvm_ffi
x = np.array([-1.0, 0.0, 2.0], dtype=np.float32)
assert relu_tvm_ffi.relu(x).tolist() == [0.0, 0.0, 2.0]
assert "torch" not in sys.modules
from relu_tvm_ffi import _ops
assert _ops.torch_add_op_namespace_prefix("x").endswith("::x")
assert _ops.jax_add_ffi_target_name_prefix("x").startswith("_relu_tvm_ffi_cpu_")
print(tvm_ffi.__version__)
"""
CLIENT = """
import sys
from pathlib import Path
import numpy as np, torch
from kernels import get_local_kernel

kernel = get_local_kernel(Path(sys.argv[1]), backend="cpu")
assert Path(kernel.__file__).is_relative_to(Path(sys.argv[1]).resolve()), kernel.__file__
x = torch.randn(33, 65)
y = kernel.relu(x)
assert torch.equal(y, torch.relu(x))
assert torch.equal(kernel.relu_backward(torch.ones_like(x), y), (x > 0).to(x.dtype))
a = x.numpy()
b = kernel.relu(a)
assert type(b) is np.ndarray
assert np.array_equal(b, np.maximum(a, 0))
print("called")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python with tvm-ffi and no torch."""
    folder = tmp_path_factory.mktemp("tvm") / "venv"
    done = rendered.run([sys.executable, "-m", "venv", folder])
    assert done.returncode == 0, done.output
    packages = ["apache-tvm-ffi", "numpy", "scikit-build-core>=1.0", "cmake", "ninja"]
    done = rendered.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *packages])
    assert done.returncode == 0, done.output
    return folder / "bin/python"


def wheel(tmp_path, python, backend):
    rendered.write_project(EXAMPLE, backend, tmp_path / "project")
    pip = [python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    env = rendered.environment()
    env["PATH"] = f"{python.parent}:{env['PATH']}"
    done = rendered.run([*pip, "-w", tmp_path, tmp_path / "project"], env=env)
    assert done.returncode == 0, done.output
    (path,) = tmp_path.glob("relu_tvm_ffi-1.0.0-py3-none-*.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "installed")
        return archive.read("relu_tvm_ffi-1.0.0.dist-info/METADATA").decode()


def test_the_cpu_example_builds_and_runs_without_torch(tmp_path, python):
    metadata = wheel(tmp_path, python, "cpu")
    done = rendered.run([python, "-c", CALL], env=rendered.environment(PYTHONPATH=tmp_path / "installed"))
    assert done.returncode == 0, done.output
    version = done.output.split()[-1].partition("+")[0]
    (required,) = (line for line in metadata.splitlines() if line.startswith("Requires-Dist: apache-tvm-ffi"))
    major, minor = version.split(".")[:2]
    assert f">={major}.{minor}." in required
    assert f"<{major}.{int(minor) + 1}" in required


@pytest.mark.cuda
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_cuda_example_builds_without_torch(tmp_path, python):
    wheel(tmp_path, python, "cuda")
    table = json.loads((tmp_path / "installed/relu_tvm_ffi/metadata.json").read_text())
    assert table["backend"]["type"] == "cuda"
    (library,) = (tmp_path / "installed").glob("relu_tvm_ffi/*.so")
    assert b"libtvm_ffi.so\0" in library.read_bytes()
    assert b"libtorch" not in library.read_bytes()


@pytest.mark.cuda
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.skipif(find_spec("tvm_ffi") is None, reason="tvm-ffi is not installed beside the tests")
def test_a_component_for_a_newer_toolkit_is_left_out_of_a_tvm_ffi_kernel_too(tmp_path):
    kernel = shutil.copytree(EXAMPLE, tmp_path / "kernel")
    newer = '\n[kernel.newer]\nbackend = "cuda"\ndepends = []\nsrc = ["newer.cu"]\ncuda-minver = "99.0"\n'
    (kernel / "build.toml").write_text((kernel / "build.toml").read_text() + newer)
    (kernel / "newer.cu").write_text("#error not to be compiled\n")
    rendered.write_project(kernel, "cuda", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", "-DKERNEL_CUDA_ARCHS=8.0")
    assert done.returncode == 0, done.output
    assert "kernel 'newer' is left out" in done.output
    assert set(rendered.commands(tmp_path / "build")) >= {"relu.cu"}
    assert "newer.cu" not in rendered.commands(tmp_path / "build")


@pytest.mark.torch
@rendered.needs_torch
def test_the_public_client_loads_the_bundled_wheel_and_calls_it_with_every_array(store, tmp_path):
    build = ["build", EXAMPLE, "--variant", "tvm-ffi01-cpu-x86_64-linux", "--store", store]
    env = rendered.environment(PYTHONPATH=rendered.ROOT)
    done = rendered.run([sys.executable, "-m", "builder", *build, "--output", tmp_path / "dist"], env=env)
    assert done.returncode == 0, done.output
    (built,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    # Of the tests' Python only torch, NumPy and the client are wanted: tvm-ffi is what the wheel asks for.
    (required,) = (line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: apache-tvm-ffi"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "tvm", required]
    assert rendered.run(pip).returncode == 0
    bundle = ["bundle", built, "--output", tmp_path / "repository/build", "--kernel", EXAMPLE]
    done = rendered.run([sys.executable, "-m", "builder", *bundle], env=env)
    assert done.returncode == 0, done.output
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": tmp_path / "home", "TVM_FFI_CACHE_DIR": tmp_path / "cache"}
    env = rendered.environment(PYTHONPATH=tmp_path / "tvm", **offline)
    done = rendered.run([sys.executable, "-c", CLIENT, tmp_path / "repository"], env=env, cwd=tmp_path)
    assert done.returncode == 0, done.output
    assert done.output.split()[-1] == "called"
