"""The derivation of a compiled file depends on it, on the files that it may include, and on the names of the others."""

import subprocess
from pathlib import Path

import pytest

from builder import resources, toml
from builder.make import record
from tests import needs
from tests.make.test_decides_bytes import closure
from tests.nix.evaluating import TINY_CELL, library
from tests.paths import ROOT

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]

BUILD = """
[general]
name = "several"
version = 7
edition = 5
license = "MIT"
backends = ["cpu"]

[torch]
src = ["torch-ext/binding.cpp"]
stable-abi = "2.10"

[kernel.part]
backend = "cpu"
depends = ["torch"]
cxx-flags = ["-DTEXT=\\"a b\\""]
src = ["csrc/*.cpp"]
"""
FILES = {
    "build.toml": BUILD,
    "torch-ext/binding.cpp": '#include "registration.h"\n#include "sub/one.h"\n',
    "torch-ext/several/__init__.py": "from ._ops import ops\n",
    "torch-ext/several/more.py": "",
    "csrc/one.cpp": '#include "sub/one.h"\nint one;\n',
    "csrc/two.cpp": "  #  include <two.h>\nint two;\n",
    "csrc/three.cpp": "int three;\n",
    "csrc/sub/one.h": '#include "../deep.h"\n',
    "csrc/deep.h": "",
    "csrc/two.h": "",
}
ONE, TWO, THREE, BINDING = "csrc/one.cpp", "csrc/two.cpp", "csrc/three.cpp", "torch-ext/binding.cpp"
ALL = {ONE, TWO, THREE, BINDING}


@pytest.fixture
def several(tmp_path):
    root = tmp_path / "several"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def objects(root):
    return library("objects", kernel=str(root), variant=TINY_CELL)


def changed(root, path, text):
    """Return the files whose derivations are others with another text at a path, and whether that of the cell is."""
    before = objects(root)
    (root / path).write_text(text, encoding="utf-8")
    after = objects(root)
    files = {each for each, drv in after["files"].items() if before["files"].get(each) != drv}
    return files, before["cell"] != after["cell"]


@pytest.mark.parametrize(
    ("path", "text", "files"),
    [
        pytest.param(ONE, FILES[ONE] + "int more;\n", {ONE}, id="a source"),
        pytest.param(BINDING, FILES[BINDING] + "// edited\n", {BINDING}, id="the binding"),
        pytest.param("csrc/two.h", "// edited\n", {TWO}, id="a header"),
        pytest.param("csrc/deep.h", "// edited\n", {ONE, BINDING}, id="a header that a header includes"),
        pytest.param("csrc/new.h", "", ALL, id="a new header, which may hide another"),
        pytest.param("torch-ext/several/more.py", "x = 1\n", set(), id="Python"),
        pytest.param("torch-ext/several/new.py", "x = 1\n", set(), id="new Python"),
        pytest.param("build.toml", BUILD.replace("version = 7", "version = 8"), set(), id="the version"),
        pytest.param("build.toml", BUILD.replace("a b", "a c"), ALL, id="a flag"),
    ],
)
def test_an_edit_changes_the_derivations_of_what_is_compiled_from_it_and_the_cell(several, path, text, files):
    assert changed(several, path, text) == (files, True)


def test_a_flake_may_ask_for_it(several):
    found = objects(several)
    assert found["flake"] == found["cell"]


def test_a_file_outside_of_the_source_set_changes_no_derivation(several):
    assert changed(several, "README.md", "# edited\n") == (set(), False)


def test_a_source_that_includes_what_a_macro_says_depends_on_every_file(several):
    (several / THREE).write_text("#define NAME <two.h>\n#include NAME\n", encoding="utf-8")
    assert changed(several, ONE, FILES[ONE] + "// edited\n")[0] == {ONE, THREE}
    assert changed(several, "csrc/deep.h", "// edited\n")[0] == {ONE, THREE, BINDING}


def test_a_source_that_includes_another_source_depends_on_it(several):
    (several / THREE).write_text('#include "one.cpp"\n', encoding="utf-8")
    assert changed(several, ONE, FILES[ONE] + "// edited\n")[0] == {ONE, THREE}


def test_files_are_told_which_others_need_python(several):
    (several / BINDING).write_text('#include <torch/extension.h>\nint x;\n#include "two.h"\n', encoding="utf-8")
    one = next(given for given in objects(several)["given"] if ONE in given["files"])
    assert one["texts"][BINDING] == '#include <torch/extension.h>\n#include "two.h"\n'
    assert one["texts"][TWO] == "  #  include <two.h>\n"


def test_the_config_that_a_file_is_given_is_that_of_the_kernel_but_its_version(several):
    text = objects(several)["given"][0]["texts"]["build.toml"]
    assert toml.loads(text) == toml.loads(BUILD.replace("version = 7", "version = 1"))


@pytest.mark.parametrize(
    "table", ['[sources.other]\nurl = "https://example.org/x"', '[[generate]]\nscript = "make.py"']
)
def test_a_kernel_with_generated_sources_or_those_of_other_projects_is_compiled_in_one(several, table):
    (several / "build.toml").write_text(FILES["build.toml"].replace("[torch]", f"{table}\n\n[torch]"), encoding="utf-8")
    assert objects(several)["files"] == {}


def test_a_kernel_with_links_is_compiled_in_one(several):
    (several / "csrc/link.h").symlink_to("two.h")
    assert objects(several)["files"] == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(TWO, 'asm(".incbin "x.bin"");\n', id="a file that is no header"),
        pytest.param("csrc/two.h", "NAME(TORCH_EXTENSION_NAME)\n", id="the name of the ops in a header"),
    ],
)
def test_a_kernel_whose_objects_all_depend_on_the_whole_project_is_compiled_in_one(several, path, text):
    (several / path).write_text(text, encoding="utf-8")
    assert objects(several)["files"] == {}


def test_every_header_of_torch_that_needs_python_is_known_by_a_word(several):
    known = objects(several)
    headers = toml.loads((resources.DATA / "python-headers.toml").read_text(encoding="utf-8"))["torch"]
    assert [name for name in headers if not any(word in name for word in known["ofPython"])] == []
    assert [name for name in headers if any(word in name for word in known["withoutPython"])] == []


def test_what_compiles_a_file_is_given_the_code_that_it_imports_and_no_more():
    needs.program("nix")
    text = f'"${{(import {ROOT}/builder/nix).tool.caching}}"'
    command = ["nix", "--extra-experimental-features", "nix-command", "eval", "--impure", "--raw", "--expr", text]
    core = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    given = {path.relative_to(core).as_posix() for path in core.rglob("*") if path.is_file()}
    listed = {name for name, _ in record.files()}
    assert given - listed == closure("builder.compile_cache.derivation") - listed
    assert listed <= given
