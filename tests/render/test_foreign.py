"""Foreign sources in a rendered project: named by their hashes, and below variables that CMake sets."""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from builder import toml
from builder.config import Backend
from builder.render import render
from builder.resources import CMAKE
from tests.given.repositories import commit, git
from tests.render.small import kernel, lists

REV = "0123456789abcdef0123456789abcdef01234567"
GIT = f'[sources.cut]\ngit = "https://example.org/cut.git"\nrev = "{REV}"\n'


def test_entries_of_a_foreign_source_are_below_its_variable(tmp_path):
    found = lists(tmp_path, component='include = ["cut:include", "cut:."]', extra=GIT)
    assert '  INCLUDE_DIRS\n    "${cut_SOURCE_DIR}/include"\n    "${cut_SOURCE_DIR}/."\n' in found
    assert f"kernel_foreign_source(\n  cut\n  GIT https://example.org/cut.git\n  REV {REV}\n)\n" in found
    assert 'kernel_prefix_map(_tiny_cpu "${cut_SOURCE_DIR}" sources/cut)' in found


@pytest.mark.parametrize(
    ("submodules", "written"),
    [
        pytest.param("true", "  SUBMODULES ALL\n", id="all"),
        pytest.param('["a", "b/c"]', "  SUBMODULES\n    a\n    b/c\n", id="some"),
        pytest.param("false", "", id="none"),
    ],
)
def test_submodules_are_fetched_by_choice(tmp_path, submodules, written):
    found = lists(tmp_path, component='include = ["cut:a"]', extra=f"{GIT}submodules = {submodules}\n")
    assert f"  REV {REV}\n{written})\n" in found


def test_a_source_that_a_backend_does_not_use_is_not_fetched_for_it(tmp_path):
    assert "cut" not in lists(tmp_path, extra=GIT)


def test_a_kernel_of_tvm_ffi_has_foreign_sources_too(tmp_path):
    found = kernel(tmp_path, framework="tvm-ffi", component='include = ["cut:include"]', extra=GIT)
    project = render(found, Backend.CPU)
    assert 'kernel_prefix_map(_tiny_cpu "${cut_SOURCE_DIR}" sources/cut)' in project["CMakeLists.txt"]
    assert {"cmake/prefix_map.cmake", "cmake/foreign/source.cmake"} <= set(project.files)


def test_a_config_without_foreign_sources_renders_nothing_of_them(tmp_path):
    assert "foreign" not in lists(tmp_path)


def test_a_binding_from_a_foreign_source_is_compiled_with_the_name_of_the_ops(tmp_path):
    found = kernel(tmp_path, extra=GIT).root / "build.toml"
    text = found.read_text(encoding="utf-8").replace('src = ["torch-ext/binding.cpp"]', 'src = ["cut:api.cpp"]')
    written = lists(tmp_path, files={"build.toml": text})
    assert '  NAME_IN\n    "${cut_SOURCE_DIR}/api.cpp"\n' in written


def test_a_tree_that_is_not_there_stops_no_render(tmp_path):
    assert '"${cut_SOURCE_DIR}/x/a.cpp"' in lists(tmp_path, component='include = ["cut:x/a.cpp"]', extra=GIT)


def run_cmake(tmp_path, text, *options):
    """Run a script with `kernel_foreign_source` in a project that compiles nothing."""
    (tmp_path / "p").mkdir(exist_ok=True)
    head = "cmake_minimum_required(VERSION 3.26...4.3)\nproject(p LANGUAGES NONE)\n"
    head += f'include("{CMAKE}/foreign/source.cmake")\n'
    (tmp_path / "p/CMakeLists.txt").write_text(head + text, encoding="utf-8")
    beside = Path(sys.executable).with_name("cmake")
    program = str(beside) if beside.exists() else shutil.which("cmake")
    command = [program, "-S", str(tmp_path / "p"), "-B", str(tmp_path / "b"), "-GNinja", *options]
    env = {**os.environ, "PATH": f"{beside.parent}:{os.environ['PATH']}"}  # ninja is beside cmake
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


HOSTILE = [
    "a b.h",
    "$HOME.h",
    "${x}.h",
    "$ENV{HOME}.h",
    'a"b.h',
    "a\\b.h",
    "@x@.h",
    "(a).h",
    "a'b.h",
    "é.h",
    "a:b.h",
]
"""Paths in a foreign tree that would be syntax, if they were not quoted."""


@pytest.mark.cmake
def test_no_path_in_a_foreign_tree_becomes_syntax(tmp_path):
    entries = ", ".join(toml.spelled(f"cut:{path}") for path in HOSTILE)
    written = lists(tmp_path / "kernel", component=f"include = [{entries}]", extra=GIT)
    shown = written.partition("  INCLUDE_DIRS\n")[2].partition("\n)")[0]
    text = f'set(cut_SOURCE_DIR "/tree")\nset(found\n{shown}\n)\nlist(JOIN found "|" found)\n'
    done = run_cmake(tmp_path, text + f'file(WRITE "{tmp_path}/found" "${{found}}")\n')
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found").read_text(encoding="utf-8").split("|") == [f"/tree/{path}" for path in HOSTILE]


@pytest.mark.cmake
def test_plain_cmake_fetches_a_commit_and_runs_nothing_of_it(tmp_path):
    refusing = 'message(FATAL_ERROR "its CMakeLists.txt ran")\n'
    rev = commit(tmp_path / "cut", {"include/a.h": "int a;\n", "CMakeLists.txt": refusing})
    git(tmp_path / "cut", "config", "uploadpack.allowAnySHA1InWant", "true")
    text = f'kernel_foreign_source(cut GIT "file://{tmp_path}/cut" REV {rev})\n'
    done = run_cmake(tmp_path, text + 'file(READ "${cut_SOURCE_DIR}/include/a.h" x)\nmessage(STATUS "found ${x}")\n')
    assert done.returncode == 0, done.stderr
    assert "found int a;" in done.stdout


@pytest.mark.cmake
def test_plain_cmake_fetches_an_archive_by_its_hash_alone(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("top/a.h")
        member.size = 6
        archive.addfile(member, io.BytesIO(b"int a;"))
    right = hashlib.sha256((tmp_path / "a.tar.gz").read_bytes()).hexdigest()
    call = f'kernel_foreign_source(fmt URL "file://{tmp_path}/a.tar.gz" SHA256 {{}})\n'
    call += 'file(READ "${fmt_SOURCE_DIR}/a.h" x)\n'
    assert run_cmake(tmp_path, call.replace("{}", right)).returncode == 0
    shutil.rmtree(tmp_path / "b")
    refused = run_cmake(tmp_path, call.replace("{}", "0" * 64))
    assert refused.returncode != 0
    assert "hash" in refused.stderr.lower()


@pytest.mark.cmake
def test_a_named_folder_takes_the_place_of_fetching(tmp_path):
    (tmp_path / "here").mkdir()
    text = (
        f'kernel_foreign_source(a-b GIT "https://example.org/x" REV {REV})\nmessage(STATUS "at ${{a-b_SOURCE_DIR}}")\n'
    )
    done = run_cmake(tmp_path, text, f"-DFETCHCONTENT_SOURCE_DIR_A-B={tmp_path}/here")
    assert f"at {tmp_path}/here" in done.stdout, done.stderr
    shutil.rmtree(tmp_path / "here")
    done = run_cmake(tmp_path, text, f"-DFETCHCONTENT_SOURCE_DIR_A-B={tmp_path}/here")
    assert "which is not a folder" in " ".join(done.stderr.split())


@pytest.mark.cmake
def test_plain_cmake_refuses_a_tag(tmp_path):
    done = run_cmake(tmp_path, 'kernel_foreign_source(cut GIT "https://example.org/x" REV v1)')
    assert "a tag can be moved" in done.stderr
