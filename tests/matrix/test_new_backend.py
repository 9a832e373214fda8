"""A new backend is a table, the file that compiles its sources, and rows: shown with a made-up one in a copy."""

import json
import os
import shutil
import subprocess
import sys

import jsonschema
import pytest

from builder.resources import DATA
from tests.paths import ROOT

TABLES = """
[vector]
title = "Vector units"
noarch-variant = "torch-vector"
components = true
toolkit-prefix = "vec"
sources = [".vu"]
dispatch-key = "PrivateUse1"
torch-device = "vec"
file-memory = { classic = 1.0 }

[script]
title = "Script"
noarch-variant = "torch-script"
"""
ROWS = """
  { torch = "2.13", backend = "vector", toolkit = "4.2", compute = "vec42", system = "x86_64-linux", \
variant = "torch213-cxx11-vec42-x86_64-linux" },
  { torch = "2.13", backend = "script", compute = "script", system = "x86_64-linux", noarch = true },
]
"""
CONFIG = """
[general]
name = "tiny"
version = 1
edition = 5
license = "MIT"
backends = ["vector", "script"]

[torch]
src = ["torch-ext/binding.cpp"]

[kernel.one]
backend = "vector"
depends = ["torch"]
src = ["one.vu", "helper.cpp"]
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a function that runs `builder` from a copy that has two more backends, in a kernel for them."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("builder", "templates", "cmake"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with (root / "builder/data/backends.toml").open("a") as file:
        file.write(TABLES)
    matrix = root / "builder/data/matrix.toml"
    release, line, rest = matrix.read_text().partition("\n[preview]")
    assert release.rstrip().endswith("]")
    matrix.write_text(release.rstrip().removesuffix("]") + ROWS.lstrip("\n") + line + rest)
    plain = (root / "cmake/cpu/component.cmake").read_text()
    (root / "cmake/vector").mkdir()
    (root / "cmake/vector/component.cmake").write_text(plain.replace("kernel_cpu_", "kernel_vector_"))
    kernel = root / "tiny"
    for file in ("torch-ext/tiny/__init__.py", "torch-ext/binding.cpp", "one.vu", "helper.cpp"):
        (kernel / file).parent.mkdir(parents=True, exist_ok=True)
        (kernel / file).write_text("", encoding="utf-8")
    (kernel / "build.toml").write_text(CONFIG, encoding="utf-8")

    def run(*arguments, code=0):
        command = [sys.executable, "-m", "builder", *arguments]
        env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        done = subprocess.run(command, cwd=kernel, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def test_the_matrix_has_its_cells(copy):
    document = json.loads(copy("matrix", "--format", "json"))
    jsonschema.validate(document, json.loads((DATA / "matrix.schema.json").read_text(encoding="utf-8")))
    cells = document["cells"]
    assert [cell["variant"] for cell in cells] == ["torch213-cxx11-vec42-x86_64-linux", "torch-script"]


def test_its_cells_are_shared_out_over_jobs_of_ci(copy):
    jobs = json.loads(copy("matrix", "--format", "json", "--shards", "2"))["jobs"]
    assert sorted(job["backend"] for job in jobs) == ["script", "vector"]


def test_its_sources_are_rendered_as_a_project(copy, tmp_path):
    copy("render", "--backend", "vector", "--output", str(tmp_path / "project"))
    text = (tmp_path / "project/CMakeLists.txt").read_text()
    assert "for Vector units." in text
    assert "\nkernel_vector_component(\n" in text
    assert "\nkernel_torch_find(DEVICE vec)\n" in text
    assert (tmp_path / "project/cmake/vector/component.cmake").is_file()
    assert (tmp_path / "project/one.vu").is_file()


def test_a_kernel_of_python_alone_is_rendered_for_one_without_components(copy, tmp_path):
    copy("render", "--backend", "script", "--output", str(tmp_path / "project"))
    metadata = json.loads((tmp_path / "project/torch-ext/tiny/metadata.json").read_text())
    assert metadata["backend"] == {"type": "script"}
    own = (tmp_path / "project/torch-ext/tiny/_ops.py").read_text()
    assert 'if getattr(torch.version, "vec", None) is not None:\n        return "vector"\n' in own


def test_a_kernel_for_it_is_checked_like_any_other(copy):
    found = json.loads(copy("check", "--format", "json"))["problems"]
    assert [problem["message"] for problem in found if problem["severity"] == "error"] == []
    assert "backend 'script' has only pure-Python kernels, and this one has components" in {
        problem["message"] for problem in found
    }


def test_its_sources_are_refused_in_a_component_of_another(copy, tmp_path):
    wrong = CONFIG.replace('"vector", "script"', '"cpu"').replace('"vector"', '"cpu"')
    shutil.copytree(ROOT / "examples/relu/torch-ext", tmp_path / "torch-ext")
    (tmp_path / "torch-ext/relu").rename(tmp_path / "torch-ext/tiny")
    for file in ("torch-ext/binding.cpp", "one.vu", "helper.cpp"):
        (tmp_path / file).write_text("", encoding="utf-8")
    (tmp_path / "build.toml").write_text(wrong, encoding="utf-8")
    found = json.loads(copy("check", str(tmp_path), "--format", "json", code=2))["problems"]
    assert "'one.vu' cannot be compiled for 'cpu'" in {problem["message"] for problem in found}


def test_the_schema_has_both_and_a_component_for_the_one_that_is_compiled(copy):
    table = json.loads(copy("schema"))
    assert {"vector", "script"} <= set(table["$defs"]["Backend"]["enum"])
    assert table["$defs"]["VectorComponent"]["description"] == "Sources for Vector units."
    assert (
        "script"
        not in copy("schema", "--format", "markdown").split("| Backend of the component. |")[0].split("one of")[-1]
    )
