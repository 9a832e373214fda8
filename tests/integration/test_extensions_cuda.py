"""Two libraries with CUDA sources, one of them in both, by the real nvcc."""

import json
import shutil

import pytest

from builder.binary import device_code
from tests.integration import rendered

COMPONENTS = """
[kernel.one]
backend = "cuda"
depends = []
src = ["one.cu"]
defines = { ANSWER = 42 }
cuda-capabilities = ["8.0"]

[kernel.two]
backend = "cuda"
depends = []
src = ["one.cu", "made.cu"]
defines = { ANSWER = 43 }
cuda-capabilities = ["9.0"]
extension = "more"

[extension.more]
src = ["torch-ext/binding.cpp"]
cxx-flags = ["-DKEY=CUDA"]

[[generate]]
script = "make.py"
args = ["{archs}"]
outputs = ["made.cu"]
"""
FILES = {
    "one.cu": """#include <cstdint>
__global__ void nothing() {}
int64_t answer() { nothing<<<1, 1>>>(); return ANSWER; }
""",
    "make.py": """import sys
open("made.cu", "w").write("__global__ void made() {} // " + sys.argv[1])
""",
    "torch-ext/small/__init__.py": "from ._ops import ops\nfrom ._ops_more import ops as more\n",
}

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.cuda,
    rendered.needs_torch,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]


def test_each_library_has_the_device_code_that_its_components_ask_for(tmp_path):
    kernel = rendered.small_kernel(tmp_path / "kernel", COMPONENTS, FILES, backend="cuda")
    rendered.write_project(kernel, "cuda", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    plan = json.loads((tmp_path / "build/kernel-plan.json").read_text(encoding="utf-8"))
    assert plan["archs"] == ["8.0", "9.0"]
    assert [(each["name"], each["compiled"]) for each in plan["components"]] == [("one", ["8.0"]), ("two", ["9.0"])]
    metadata = json.loads((tmp_path / "installed/small/metadata.json").read_text(encoding="utf-8"))
    assert metadata["backend"]["archs"] == ["8.0", "9.0"]
    found = {}
    for path in (tmp_path / "installed/small").glob("*.so"):
        groups = device_code.groups(path.name, path.read_bytes())
        found[path.name.rpartition("_")[0]] = sorted({image.arch for group in groups for image in group})
    assert found == {"_small_cuda": ["8.0"], "_small_more_cuda": ["9.0"]}
    assert metadata["extensions"] == {"more": metadata["id"].replace("_small_cuda", "_small_more_cuda")}
    assert "// 8.0,9.0" in (tmp_path / "build/generated/made.cu").read_text(encoding="utf-8")
