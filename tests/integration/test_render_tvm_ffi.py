"""tvm-ffi: built without torch, loaded by tvm-ffi and by the public client, called with arrays of several libraries."""

import importlib.util
import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest


def sibling(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rendered = sibling("rendered")

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
    (path,) = tmp_path.glob("relu_tvm_ffi-1.0.0-cp39-abi3-*.whl")
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
    (library,) = (tmp_path / "installed").glob("relu_tvm_ffi/*.abi3.so")
    assert b"libtvm_ffi.so\0" in library.read_bytes()
    assert b"libtorch" not in library.read_bytes()
