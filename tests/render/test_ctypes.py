"""A plain library as a rendered project, and what real CMake makes of it."""

import ast
import ctypes
import shutil
import subprocess

import pytest

from builder.binary.extension import Extension
from builder.config import Backend
from builder.config.source_tables import exported
from builder.kernel import load
from builder.render import render
from tests.integration import rendered
from tests.paths import TESTS

PLAIN = TESTS / "data/kernels/plain"
cmake = pytest.mark.cmake


def test_a_project_names_what_it_exports_and_finds_no_framework():
    project = render(load(PLAIN), Backend.CUDA, unique_id="one")
    lists = project["CMakeLists.txt"]
    assert '  LIBRARY _plain_cuda_one\n  MODULE plain\n  EXPORTS\n    "plain_*"\n    answer\n    last_error\n' in lists
    assert "torch" not in lists
    assert not [path for path in project.files if "torch" in path or path.endswith(("_ops.py", "requirement.py"))]
    assert 'requires = ["scikit-build-core>=1.0"]\n' in project["pyproject.toml"]
    assert "dependencies = []\n" in project["pyproject.toml"]
    assert "dynamic" not in project["pyproject.toml"]


@pytest.mark.parametrize("backend", [Backend.CPU, Backend.CUDA])
def test_the_generated_module_loads_what_nvidia_has_and_then_the_library(backend):
    text = render(load(PLAIN), backend, unique_id="one")["ctypes-ext/plain/_library.py"]
    ast.parse(text)
    assert f'BACKEND = "{backend}"\n' in text
    assert ("libcudart.so" in text, "libcublas.so" in text) == ((backend is Backend.CUDA,) * 2)
    if backend is Backend.CUDA:
        assert text.index("libcudart.so") < text.index("libcublas.so")


def test_a_file_of_the_package_cannot_take_the_place_of_the_generated_one(tmp_path):
    root = shutil.copytree(PLAIN, tmp_path / "plain")
    (root / "ctypes-ext/plain/_library.py").write_text("raise SystemExit\n", encoding="utf-8")
    assert "raise" not in render(load(root), Backend.CPU)["ctypes-ext/plain/_library.py"]


@cmake
def test_a_library_exports_what_it_is_asked_for_and_can_be_called(tmp_path):
    rendered.write_project(PLAIN, "cpu", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Release")
    assert done.returncode == 0, done.output
    assert "CMake Warning" not in done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed/plain").glob("*.so")
    names = {symbol.name for symbol in Extension.read(library.name, library.read_bytes()).defined}
    assert names == exported(names, ["plain_*", "answer"]) == {"plain_scale", "answer"}
    assert ctypes.CDLL(str(library)).answer() == 42


@cmake
@pytest.mark.slow
def test_another_list_of_exports_links_again_and_compiles_nothing(tmp_path):
    rendered.write_project(PLAIN, "cpu", tmp_path / "project")
    lists = tmp_path / "project/CMakeLists.txt"
    for text in ('"plain_*"\n    answer', '"ans?er"'):
        lists.write_text(lists.read_text(encoding="utf-8").replace('"plain_*"\n    answer', text), encoding="utf-8")
        assert rendered.configure(tmp_path / "project", tmp_path / "build").returncode == 0
        done = rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    assert "Building CXX" not in done.output
    assert "Linking CXX shared module" in done.output
    (library,) = (tmp_path / "build").glob("*.so")
    assert [symbol.name for symbol in Extension.read(library.name, library.read_bytes()).defined] == ["answer"]


@cmake
def test_the_project_is_configured_by_a_python_without_torch(tmp_path):
    rendered.write_project(PLAIN, "cpu", tmp_path / "project")
    subprocess.run([rendered.sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    done = rendered.configure(tmp_path / "project", tmp_path / "build", python=python)
    assert done.returncode == 0, done.output
