"""A kernel becomes a project: complete, deterministic, and safe whatever its config says."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from builder import toml
from builder.config import Backend
from builder.errors import BuilderError
from builder.kernel import load
from builder.matrix import is_noarch
from builder.render import backends, render
from builder.resources import DATA
from tests.given.files import write
from tests.paths import ROOT
from tests.render.small import kernel

EXAMPLES = ROOT / "examples"
CUTLASS_4_0 = "dc4817921edda44a549197ff3a9dcf5df0636e7b"
RENDERED = ("CMakeLists.txt", "pyproject.toml", "registration.h", "_ops.py", "requirement.py", "metadata.json")
CASES = [
    (path.parent.name, str(backend))
    for path in sorted(EXAMPLES.glob("*/build.toml"))
    for backend in backends(load(path.parent))
]


@pytest.mark.parametrize(("example", "backend"), CASES)
def test_an_example_renders_to_the_tree_on_disk(example, backend, golden):
    project = render(load(EXAMPLES / example), Backend(backend), unique_id="golden")
    shown = {path: project[path] for path in project.files if path.rpartition("/")[2].removesuffix(".in") in RENDERED}
    golden(f"render/{example}/{backend}", {**shown, "files.txt": "".join(f"{path}\n" for path in project.files)})


@pytest.mark.parametrize(("example", "backend"), CASES)
def test_a_project_holds_the_cmake_of_its_own_backend_alone(example, backend):
    project = render(load(EXAMPLES / example), Backend(backend))
    folders = {path.split("/")[1] for path in project.files if path.startswith("cmake/") and path.count("/") > 1}
    assert not (folders & {"cpu", "cuda", "rocm", "xpu", "metal"}) - {backend}


@pytest.mark.parametrize(("example", "backend"), CASES)
def test_every_function_a_project_calls_is_in_it(example, backend):
    project = render(load(EXAMPLES / example), Backend(backend))
    cmake = {path: project[path] for path in project.files if path.endswith((".cmake", "CMakeLists.txt"))}
    defined = {name for text in cmake.values() for name in re.findall(r"^function\((\w+)", text, re.MULTILINE)}
    called = {name for text in cmake.values() for name in re.findall(r"^\s*(kernel_\w+)\(", text, re.MULTILINE)}
    if "cmake/objects/add.cmake" not in project.files:
        called -= {"kernel_objects_add", "kernel_objects_only"}  # not reached
    assert called <= defined
    included = {
        name for name in defined if any(re.search(rf"^\s*{name}\(", text, re.MULTILINE) for text in cmake.values())
    }
    assert defined == included, "a module that nothing uses"


SCRIPT = """
import sys
from pathlib import Path
from builder.config import Backend
from builder.kernel import load
from builder.matrix import is_noarch
from builder.render import backends, render
for path in sorted(Path(sys.argv[1]).glob("*/build.toml")):
    kernel = load(path.parent)
    for backend in backends(kernel):
        print(path.parent.name, backend, render(kernel, backend).digest)
"""


def test_two_processes_render_the_same_bytes(tmp_path):
    copy = shutil.copytree(EXAMPLES, tmp_path / "another folder", ignore=shutil.ignore_patterns("__pycache__"))
    outputs = []
    for folder, seed, locale, zone in ((EXAMPLES, "0", "C", "UTC"), (copy, "4711", "C.UTF-8", "Asia/Kathmandu")):
        environ = {
            "PYTHONHASHSEED": seed,
            "LC_ALL": locale,
            "TZ": zone,
            "PYTHONPATH": str(EXAMPLES.parent),
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
        }
        command = [sys.executable, "-c", SCRIPT, str(folder)]
        outputs.append(subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == len(CASES)


def test_the_id_is_of_the_content(tmp_path):
    first = render(kernel(tmp_path / "a"), Backend.CPU)
    assert first == render(kernel(tmp_path / "b"), Backend.CPU)
    other = render(kernel(tmp_path / "c", files={"one.cpp": "// changed"}), Backend.CPU)
    name = re.compile(r"_tiny_cpu_([0-9a-f]{7})\b")
    assert set(name.findall(first["CMakeLists.txt"])) != set(name.findall(other["CMakeLists.txt"]))


def test_a_file_of_another_backend_does_not_change_the_id(tmp_path):
    extra = '\n[kernel.two]\nbackend = "cuda"\ndepends = []\nsrc = ["two.cu"]\n'
    trees = []
    for folder, text in (("a", "// one"), ("b", "// two")):
        root = tmp_path / folder
        kernel(root)
        config = (root / "build.toml").read_text().replace('backends = ["cpu"]', 'backends = ["cpu", "cuda"]')
        trees.append(load(write(root, {"build.toml": config + extra, "two.cu": text})))
    assert render(trees[0], Backend.CPU) == render(trees[1], Backend.CPU)
    assert render(trees[0], Backend.CUDA) != render(trees[1], Backend.CUDA)


def test_one_name_is_everywhere(tmp_path):
    project = render(kernel(tmp_path), Backend.CPU, unique_id="abc")
    assert json.loads(project["torch-ext/tiny/metadata.json"])["id"] == "_tiny_cpu_abc"
    assert "_tiny_cpu_abc" in project["CMakeLists.txt"]
    assert "torch.ops._tiny_cpu_abc" in project["torch-ext/tiny/_ops.py"]


@pytest.mark.parametrize("unique_id", ["", "a-b", "a b", "a;b", "ä", "a\n", "x)"])
def test_an_id_that_is_no_part_of_a_name_is_refused(tmp_path, unique_id):
    with pytest.raises(BuilderError, match="cannot be the id"):
        render(kernel(tmp_path), Backend.CPU, unique_id=unique_id)


def test_a_backend_that_the_kernel_does_not_have_is_refused(tmp_path):
    with pytest.raises(BuilderError, match="has no backend 'cuda'"):
        render(kernel(tmp_path), Backend.CUDA)


def test_a_backend_without_components_is_noarch(tmp_path):
    loaded = kernel(tmp_path)
    config = (tmp_path / "build.toml").read_text().replace('["cpu"]', '["cpu", "tpu"]')
    loaded = load(write(tmp_path, {"build.toml": config}))
    assert [is_noarch(loaded.config, backend) for backend in backends(loaded)] == [False, True]
    project = render(loaded, Backend.TPU)
    assert sorted(project.files) == [
        "pyproject.toml",
        "torch-ext/tiny/__init__.py",
        "torch-ext/tiny/_ops.py",
        "torch-ext/tiny/metadata.json",
    ]


def test_the_stable_abi_is_asked_for_by_its_backend_alone(tmp_path):
    project = render(kernel(tmp_path, torch='stable-abi = { cpu = "2.10" }'), Backend.CPU)
    assert "kernel_torch_find(STABLE_ABI 2.10)" in project["CMakeLists.txt"]
    table = toml.loads(project["pyproject.toml"])
    assert table["project"]["dependencies"] == ["torch>=2.10"]
    assert "requirement.py" not in project.files


@pytest.mark.parametrize(
    ("built_with", "least"), [("0.1.12", "0.1.13"), ("0.1.13.post3", "0.1.13.post3"), ("0.1.20", "0.1.20")]
)
def test_a_rendered_project_asks_for_no_tvm_ffi_whose_addons_are_shared(built_with, least, monkeypatch):
    project = render(load(EXAMPLES / "relu-tvm-ffi"), Backend.CPU)
    table = toml.loads(project["pyproject.toml"])
    assert "apache-tvm-ffi>=0.1.13" in table["build-system"]["requires"]
    (provider,) = table["tool"]["dynamic-metadata"]
    module = {}
    exec(compile(project["requirement.py"], "requirement.py", "exec"), module)
    monkeypatch.setitem(module, "version", lambda _: built_with)
    asked = module["dynamic_metadata"](provider, {})
    assert asked == {"dependencies": [f"apache-tvm-ffi>={least},<0.2"]}


def test_bounds_of_torch_are_those_of_the_build(tmp_path):
    project = render(kernel(tmp_path, torch='minver = "2.11"\nmaxver = "2.12"'), Backend.CPU)
    assert "torch>=2.11,<2.13" in toml.loads(project["pyproject.toml"])["build-system"]["requires"]


def test_python_dependencies_become_packages(tmp_path):
    project = render(kernel(tmp_path, general='python-depends = ["tvm-ffi"]'), Backend.CPU)
    assert "apache-tvm-ffi>=0.1.13" in toml.loads(project["pyproject.toml"])["project"]["dependencies"]
    assert json.loads(project["torch-ext/tiny/metadata.json"])["python-depends"] == ["tvm-ffi"]


def test_metadata_has_the_keys_in_the_order_of_the_contract(tmp_path):
    general = """upstream = "https://example.com/up"
source = "https://example.com/src"
kernel-depends = [{ repo-id = "a/b", version = 2 }, { repo-id = "c/d", revision = "main" }]
"""
    table = json.loads(render(kernel(tmp_path, general=general), Backend.CPU)["torch-ext/tiny/metadata.json"])
    own = ["name", "id", "version", "kernels-minver", "license", "upstream", "source"]
    assert list(table) == [*own, "python-depends", "kernel-depends", "backend"]
    assert table["kernel-depends"] == [{"repo-id": "a/b", "version": 2}, {"repo-id": "c/d", "revision": "main"}]


def test_the_public_client_reads_the_metadata(tmp_path):
    rust = pytest.importorskip("kernels._rust")
    general = 'kernel-depends = [{ repo-id = "a/b", version = 2 }]\nupstream = "https://example.com/up"'
    text = render(kernel(tmp_path, general=general), Backend.CPU)["torch-ext/tiny/metadata.json"]
    metadata = rust.Metadata.from_bytes(text.encode())
    assert (str(metadata.name), metadata.version) == ("tiny", 3)
    assert [depends.repo_id for depends in metadata.kernel_depends] == ["a/b"]
    assert str(metadata.kernels_minver) == "0.17.0"
    plain = render(kernel(tmp_path, general=""), Backend.CPU)["torch-ext/tiny/metadata.json"]
    assert rust.Metadata.from_bytes(plain.encode()).kernels_minver is None


@pytest.mark.parametrize("backend", ["cuda", "rocm"])
def test_text_of_the_config_cannot_reach_cmake_through_the_metadata(tmp_path, backend):
    general = 'license = "@CMAKE_CXX_COMPILER@ \\"archs\\": []"\nupstream = "https://u@h/@KERNEL_ARCHITECTURES@"'
    loaded = kernel(tmp_path, backend=backend, general=general.split("\n")[1])
    config = (tmp_path / "build.toml").read_text().replace('license = "Apache-2.0"', general.split("\n", maxsplit=1)[0])
    loaded = load(write(tmp_path, {"build.toml": config}))
    text = render(loaded, Backend(backend))["metadata.json.in"]
    assert text.count("@") == 2
    table = json.loads(text.replace("@KERNEL_ARCHITECTURES@", '["x"]'))
    assert table["license"] == '@CMAKE_CXX_COMPILER@ "archs": []'
    assert table["upstream"] == "https://u@h/@KERNEL_ARCHITECTURES@"
    assert table["backend"]["archs"] == ["x"]


def test_cuda_says_what_each_toolkit_compiles_and_loses(tmp_path):
    loaded = kernel(tmp_path, backend="cuda", component='cuda-capabilities = ["8.0", "10.0a"]\ncuda-minver = "12.8"')
    text = render(loaded, Backend.CUDA)["CMakeLists.txt"]
    assert "  CAPABILITIES\n    CUDA>=12.8 8.0 10.0a\n    CUDA>=11.8 8.0 lost 10.0a\n" in text
    assert "  MINVER 12.8\n" in text


@pytest.mark.parametrize(
    ("depends", "backend", "lines"),
    [
        ("cutlass_3_8", "cuda", ["NAME cutlass", "VERSION 3.8.0", "WHEEL nvidia-cutlass==3.8.0.0"]),
        (
            "cutlass_4_0",
            "cuda",
            ["NAME cutlass", "VERSION 4.0.0", "VARIABLE CUTLASS_SRC_DIR", f"COMMIT {CUTLASS_4_0}"],
        ),
        ("sycl_tla", "xpu", ["NAME sycl_tla", "VARIABLE SYCL_TLA_SRC_DIR"]),
        ("metal-cpp", "metal", ["NAME metal-cpp", "CONTAINS Metal/Metal.hpp"]),
    ],
)
def test_a_library_of_headers_is_looked_for(tmp_path, depends, backend, lines):
    extra = f'\n[kernel.two]\nbackend = "{backend}"\ndepends = ["{depends}"]\nsrc = ["two.cpp"]\n'
    project = render(kernel(tmp_path, backend=backend, extra=extra, files={"two.cpp": ""}), Backend(backend))
    assert "cmake/headers/find.cmake" in project.files
    text = project["CMakeLists.txt"]
    assert all(f"  {line}\n" in text for line in lines)
    assert ("WHEEL" in text) == ("3_8" in depends)
    assert ("COMMIT" in text) == ("4_0" in depends)


def test_every_version_of_cutlass_is_pinned_once():
    facts = toml.loads((DATA / "cutlass.toml").read_text())["cutlass"]
    names = toml.loads((DATA / "dependencies.toml").read_text())["component"]
    versions = sorted(fact["cutlass"] for fact in names.values() if "cutlass" in fact)
    assert sorted([*facts["wheels"], *facts["commits"]]) == versions
    assert all(re.fullmatch("[0-9a-f]{64}", wheel["sha256"]) for wheel in facts["wheels"].values())
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in facts["commits"].values())


def test_headers_come_along_whoever_lists_them(tmp_path):
    component = 'include = ["inc"]'
    loaded = kernel(tmp_path, component=component, files={"inc/deep/a.cuh": "", "csrc/b.h": "", "inc/note.md": ""})
    files = render(loaded, Backend.CPU).files
    assert {"inc/deep/a.cuh", "csrc/b.h"} <= set(files)
    assert "inc/note.md" not in files
