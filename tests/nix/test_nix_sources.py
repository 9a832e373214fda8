"""Nix takes the same source set as Python, and derivations depend on nothing else."""

import shutil
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path

import pytest

from builder import kernel
from builder.config import Backend, dependencies
from builder.kernel.source_set import source_set
from builder.make import header_folders
from tests import needs
from tests.nix.evaluating import EXAMPLES, TINY, TINY_CELL, evaluate, library
from tests.paths import ROOT

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]


def python_files(root):
    return sorted({*source_set(kernel.load(root)).paths, "build.toml"})


@pytest.mark.parametrize("root", [*EXAMPLES, TINY], ids=lambda path: path.name)
def test_nix_finds_the_source_set_that_python_finds(root):
    assert library("sources", kernel=str(root))["files"] == python_files(root)


GLOBS = """
[general]
name = "globs"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]

[torch]
src = ["torch-ext/*.cpp", "top.cpp"]
include = ["headers", "."]
pyext = ["py", "json"]

[kernel.part]
backend = "cpu"
depends = ["torch"]
src = ["src/**/*.cpp", "src/one?.cc", "src/[ab]*.cxx", "src/[!a].c", "src/odd+(1).cpp", "src/*+(*).cpp"]
"""


@pytest.fixture
def globs(tmp_path):
    files = (
        *("torch-ext/globs/__init__.py", "torch-ext/globs/data.json", "torch-ext/globs/note.txt"),
        *("torch-ext/globs/__pycache__/x.py", "torch-ext/globs/.hidden.py", "torch-ext/globs/sub/more.py"),
        *("torch-ext/binding.cpp", "top.cpp", "unused.cpp", "README.md", "root.h", "build/made.h", "dist/made.h"),
        *("src/deep/er/x.cpp", "src/y.cpp", "src/.hidden/z.cpp", "src/one1.cc", "src/one12.cc", "src/a1.cxx"),
        *("src/c1.cxx", "src/a.c", "src/b.c", "src/odd+(1).cpp", "headers/x.cuh", "headers/deep/y.hpp"),
        *("headers/x.txt", "csrc/implied.inl", "csrc/implied.cpp"),
        *("LICENSE", "LICENSE-MIT.txt", "License.md", "COPYING", "NOTICE", "AUTHORS", "COPYRIGHT", "LICENSES.txt"),
        *("src/LICENSE", "LICENSE.d/x", "LICENSE two"),
    )
    root = tmp_path / "globs with a space"
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(f"{file}\n")
    (root / "build.toml").write_text(GLOBS)
    return root


def test_nix_reads_globs_as_python_does(globs):
    found = library("sources", kernel=str(globs))["files"]
    assert found == python_files(globs)
    assert "src/deep/er/x.cpp" in found
    assert "src/one12.cc" not in found


@pytest.mark.parametrize(
    "exclude", ["src/y.cpp", "./src//odd+(1).cpp", "src/**/*.c[px]*", "src/[!a]*", "src/*+(*).cpp"]
)
def test_nix_takes_out_what_python_takes_out(globs, exclude):
    config = GLOBS.replace("top.cpp", "unused.cpp") + f'exclude = ["{exclude}", "src/b.c"]\n'
    (globs / "build.toml").write_text(config)
    found = library("sources", kernel=str(globs))["files"]
    assert found == python_files(globs)
    assert "src/b.c" not in found


def test_nix_finds_the_package_and_the_data_of_the_wheel(globs):
    table = '\n[wheel]\npackage = "./python//globs/"\ndata = ["python/globs/**/*.yaml"]\nreadme = "./docs//README.md"\n'
    (globs / "build.toml").write_text(GLOBS + table)
    shutil.rmtree(globs / "torch-ext/globs")
    for file in ("__init__.py", "deep/tuned.yaml", "note.txt", "deep/data.json", "../../docs/README.md"):
        (globs / "python/globs" / file).parent.mkdir(parents=True, exist_ok=True)
        (globs / "python/globs" / file).touch()
    found = library("sources", kernel=str(globs))["files"]
    assert found == python_files(globs)
    assert {"docs/README.md", "python/globs/deep/tuned.yaml", "python/globs/deep/data.json"} <= set(found)
    assert "python/globs/note.txt" not in found


def test_a_kernel_with_links_takes_its_whole_folder(globs):
    (globs / "headers/link.h").symlink_to("x.txt")
    found = library("sources", kernel=str(globs))
    assert found["files"] is None
    (globs / "headers/x.txt").write_text("changed\n")
    assert library("sources", kernel=str(globs))["store"] != found["store"]


def derivation(root):
    return library("derivations", kernel=str(root), variants=[TINY_CELL])[TINY_CELL]


@pytest.fixture
def tiny(tmp_path):
    return Path(shutil.copytree(TINY, tmp_path / "tiny"))


def test_a_file_outside_the_source_set_changes_no_derivation(tiny):
    before = derivation(tiny)
    (tiny / "README.md").write_text("new\n")
    (tiny / "notes").mkdir()
    (tiny / "notes/more.cpp").write_text("int x;\n")
    (tiny / "torch-ext/tiny/notes.txt").write_text("new\n")
    (tiny / "csrc/twice.cpp").touch()
    assert derivation(tiny) == before


def test_a_copy_elsewhere_has_the_same_derivation(tiny, tmp_path):
    other = shutil.copytree(tiny, tmp_path / "a place with spaces" / "other-name")
    assert derivation(other) == derivation(tiny)


@pytest.mark.parametrize("file", ["csrc/twice.cpp", "csrc/factor.h", "torch-ext/tiny/__init__.py", "build.toml"])
def test_a_file_of_the_source_set_changes_the_derivation(tiny, file):
    before = derivation(tiny)
    path = tiny / file
    comment = "#" if file.endswith((".py", ".toml")) else "//"
    path.write_text(f"{path.read_text()}\n{comment} changed\n")
    assert derivation(tiny) != before


def test_nix_knows_the_headers_of_a_kernel_as_python_does(tmp_path):
    component = '\n[kernel.{0}]\nbackend = "cuda"\ndepends = ["torch", "{0}"]\nsrc = ["one.cu"]\n'
    known = [name for name, facts in dependencies.table()["component"].items() if "cutlass" in facts]
    general = (
        '[general]\nname = "headers"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cpu", "cuda"]\n[torch]\n'
    )
    (tmp_path / "build.toml").write_text(general + "".join(map(component.format, known)))
    config = kernel.load(tmp_path).config
    found = library("headers", kernel=str(tmp_path))
    expected = [asdict(wheel) for wheel in header_folders.wheels(config, Backend.CUDA, environ={})]
    assert sorted(found["cuda"], key=itemgetter("file")) == sorted(expected, key=itemgetter("file"))
    assert found["cpu"] == []
    assert {wheel["file"] for wheel in expected} == set(found["all"])
    assert len(expected) == 3


def test_a_pinned_header_is_a_wheel_of_the_environment_of_the_cells_that_need_it(tiny):
    before = derivation(tiny)
    text = (tiny / "build.toml").read_text()
    (tiny / "build.toml").write_text(text.replace('depends = ["torch"]', 'depends = ["torch", "cutlass_3_8"]'))
    assert derivation(tiny) != before
    request = {"kernel": str(tiny), "variants": [TINY_CELL], "set": "host", "system": "x86_64-linux", "options": {}}
    plan = evaluate(ROOT / "builder/nix/engine.nix", "plan", request={**request, "lock": str(ROOT / "flake.lock")})
    assert "nvidia_cutlass-3.8.0.0-py3-none-any.whl" in [wheel["file"] for wheel in plan[TINY_CELL]["wheels"]]
