"""A kernel of pybind11, built for the Python that is here, loaded and called."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from builder import audit
from builder.wheel.archive import Wheel
from tests.given.processes import builder

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
CONFIG = """
[general]
name = "each"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch]
src = ["binding.cpp"]
python-abi = "cpython"

[kernel.twice]
backend = "cpu"
depends = ["torch"]
src = ["twice.cpp"]
"""
BINDING = """
#include <torch/extension.h>
#include "registration.h"

at::Tensor twice(const at::Tensor& x);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice, py::arg("x")); }
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("twice(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("twice", &twice); }
"""
FILES = {
    "build.toml": CONFIG,
    "binding.cpp": BINDING,
    "twice.cpp": "#include <ATen/ATen.h>\nat::Tensor twice(const at::Tensor& x) { return x + x; }\n",
    "torch-ext/each/__init__.py": "from ._ops import module, ops\n\ntwice = module.twice\n",
}
CALLS = """
import each, torch
ones = torch.ones(2)
assert each.twice(x=ones).tolist() == each.ops.twice(ones).tolist() == [2.0, 2.0]
try:
    each.twice("no tensor")
except TypeError:
    print("called")
"""

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="no torch: pip install torch"),
    pytest.mark.skipif(sys.platform != "linux", reason="builds for Linux"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The kernel, built without isolation; what the user reads, and the folder of wheels."""
    root = tmp_path_factory.mktemp("each")
    for path, text in FILES.items():
        (root / "kernel" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "kernel" / path).write_text(text, encoding="utf-8")
    done = builder(
        "build", root / "kernel", "--no-isolation", "--json", "--output", root / "dist", store=root / "store"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr, root


def test_the_cell_of_the_python_that_is_here_is_built_and_the_others_say_why_not(built):
    results, said, _ = built
    torch = ".".join(version("torch").split(".")[:2])
    here = [result for result in results if result["variant"].startswith(f"torch{torch.replace('.', '')}-")]
    of_system = [result for result in here if f"{os.uname().machine}-linux" in result["variant"]]
    assert {result["variant"].rpartition("-")[2]: result["status"] for result in of_system}[HERE] == "built"
    assert {result["status"] for result in of_system if not result["variant"].endswith(HERE)} == {"skipped"}
    assert f"the current environment has one for {HERE[2]}.{HERE[3:]}" in said


def test_its_functions_and_ops_are_called_from_the_wheel(built):
    _, _, root = built
    (path,) = (root / "dist").glob("*.whl")
    assert f"-{HERE}-{HERE}-manylinux_2_28_" in path.name
    assert audit.run(Wheel.read(path)).ok
    zipfile.ZipFile(path).extractall(root / "installed")
    done = subprocess.run(
        [sys.executable, "-c", CALLS], cwd=root / "installed", capture_output=True, text=True, check=False
    )
    assert done.stdout == "called\n", done.stderr


def test_the_load_test_names_functions_and_ops(built):
    _, _, root = built
    (record,) = (root / "dist").glob("*.record.json")
    tested = json.loads(record.read_text(encoding="utf-8"))["load-test"]
    assert tested["outcome"] == "loaded"
    assert sorted(keys for found in tested["ops"].values() for keys in found) == ["CPU", "Python"]
