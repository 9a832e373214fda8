"""Kernels of two libraries: built, audited, loaded, and the ops of both called."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec

import pytest

from builder import audit
from builder.wheel.archive import Wheel
from tests.paths import ROOT

CONFIG = """
[general]
name = "pair"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch]
src = ["csrc/binding.cpp"]
{torch}

[extension.half]
src = ["csrc/binding.cpp"]
defines = {{ OP = '"scale"', HALF = true }}

[kernel.double]
backend = "cpu"
depends = ["torch"]
src = ["csrc/scale.cpp"]
defines = {{ BY = "2.0" }}

[kernel.halve]
backend = "cpu"
depends = ["torch"]
src = ["csrc/scale.cpp"]
defines = {{ BY = "0.5" }}
extension = "half"
"""
CLASSIC = {
    "csrc/binding.cpp": """
#include <ATen/core/Tensor.h>
#include <torch/library.h>
#include "registration.h"
at::Tensor scaled(const at::Tensor& x);
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("scale(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("scale", &scaled); }
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
""",
    "csrc/scale.cpp": "#include <ATen/core/Tensor.h>\nat::Tensor scaled(const at::Tensor& x) { return x.mul(BY); }\n",
}
STABLE = {
    "csrc/binding.cpp": """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include "registration.h"
torch::stable::Tensor scaled(const torch::stable::Tensor& x);
STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("scale(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("scale", TORCH_BOX(&scaled)); }
""",
    "csrc/scale.cpp": """
#include <torch/csrc/stable/ops.h>
torch::stable::Tensor scaled(const torch::stable::Tensor& x) {
  auto out = torch::stable::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(out.data_ptr())[i] = static_cast<const float*>(x.data_ptr())[i] * float(BY);
  }
  return out;
}
""",
}
MODULE = {
    "csrc/binding.cpp": """
#include <torch/csrc/utils/pybind.h>
at::Tensor scaled(const at::Tensor& x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scaled); }
""",
    "csrc/scale.cpp": CLASSIC["csrc/scale.cpp"],
}
OPS = "from ._ops import ops\nfrom ._ops_half import ops as halves\n"
MODULES = "from ._ops import module as ops\nfrom ._ops_half import module as halves\n"
KERNELS = {
    "classic": (CLASSIC, "", OPS),
    "stable": (STABLE, 'stable-abi = "2.10"', OPS),
    "pybind11": (MODULE, 'python-abi = "cpython"', MODULES),
}
CALLS = """
import pair, torch
assert pair.ops.scale(torch.ones(2)).tolist() == [2.0, 2.0]
assert pair.halves.scale(torch.ones(2)).tolist() == [0.5, 0.5]
print("called")
"""

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="no torch: pip install torch"),
    pytest.mark.skipif(sys.platform != "linux", reason="builds for Linux"),
]


def write(folder, files, torch, init):
    given = {"build.toml": CONFIG.format(torch=torch), "torch-ext/pair/__init__.py": init, **files}
    for path, text in given.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def build(root):
    command = ("build", root / "kernel", "--no-isolation", "--json", "--output", root / "dist")
    return subprocess.run(
        [sys.executable, "-m", "builder", *map(str, command)],
        env={**os.environ, "BUILDER_STORE": str(root / "store"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("abi", KERNELS)
def test_both_libraries_are_built_audited_loaded_and_called(tmp_path, abi):
    write(tmp_path / "kernel", *KERNELS[abi])
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "dist").glob("*.whl")
    assert audit.run(Wheel.read(path)).ok
    (record,) = (tmp_path / "dist").glob("*.record.json")
    tested = json.loads(record.read_text(encoding="utf-8"))["load-test"]
    spaces = {name.partition("::")[0].partition(".")[0] for name in tested["ops"]}
    assert tested["outcome"] == "loaded"
    assert sorted(space.rpartition("_")[0] for space in spaces) == ["_pair_cpu", "_pair_half_cpu"]
    zipfile.ZipFile(path).extractall(tmp_path / "installed")
    called = subprocess.run(
        [sys.executable, "-c", CALLS], cwd=tmp_path / "installed", capture_output=True, text=True, check=False
    )
    assert called.stdout == "called\n", called.stderr


def test_a_library_without_ops_refuses_the_wheel_though_the_other_has_some(tmp_path):
    binding = STABLE["csrc/binding.cpp"].replace("STABLE_TORCH", "#ifndef HALF\nSTABLE_TORCH", 1)
    files = STABLE | {"csrc/binding.cpp": f"{binding}#endif\n"}
    write(tmp_path / "kernel", files, KERNELS["stable"][1], "from ._ops import ops\n")
    done = build(tmp_path)
    assert done.returncode != 0
    assert "registers no op in '_pair_half_cpu_" in done.stderr
    assert "in a file of extension.half.src" in done.stderr


NEITHER = (
    "from ._ops import ops\ntry:\n    from ._ops_half import ops as halves\nexcept ImportError:\n    halves = None\n"
)


@pytest.mark.parametrize(("torch", "has"), [("<2.0", False), (">=2.0", True)])
def test_a_cell_without_an_extension_has_nothing_of_it_and_is_imported(tmp_path, torch, has):
    write(tmp_path / "kernel", STABLE, KERNELS["stable"][1], NEITHER)
    config = tmp_path / "kernel/build.toml"
    text = config.read_text(encoding="utf-8").replace(
        "[extension.half]", f'[extension.half]\nwhen = {{ torch = "{torch}" }}'
    )
    config.write_text(text, encoding="utf-8")
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(path).namelist()
    said = json.loads(zipfile.ZipFile(path).read("pair/metadata.json"))
    assert ("pair/_ops_half.py" in names, len([name for name in names if name.endswith(".so")])) == (has, 1 + has)
    assert tuple(said.get("extensions", {})) == (("half",) if has else ())
