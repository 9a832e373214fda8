"""The compilers for another system: found by their names, told by their content, and refused without a C library."""

import pytest

from builder import toolchain
from builder.config import Backend
from builder.errors import NotHereError

COMPILER = """#!/bin/sh
case "$1" in
  --version) echo "{name} (Debian 12.2.0) 12.2.0" ;;
  -dumpmachine) echo aarch64-linux-gnu ;;
  -print-file-name=libc.so.6) echo {libc} ;;
  -print-prog-name=*|-print-file-name=*) echo "${{1#*=}}" ;;
esac
"""


@pytest.fixture
def tools(tmp_path):
    """Return a function that makes a folder with cross compilers; what runs them is the shell."""

    def make(folder="bin", *, libc=None):
        (tmp_path / "libc.so.6").write_text("of aarch64")
        (tmp_path / folder).mkdir()
        for name in ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-gcc"):
            path = tmp_path / folder / name
            path.write_text(COMPILER.format(name=name, libc=libc or tmp_path / "libc.so.6"))
            path.chmod(0o755)
        return tmp_path / folder

    return make


def find(folder, **environ):
    return toolchain.find(Backend.CPU, environ={"PATH": str(folder), **environ}, target="aarch64-linux")


def test_both_compilers_are_those_of_the_other_system_whatever_names_the_ones_of_this(tools):
    folder = tools()
    found = find(folder, CXX="/nowhere/clang++", CC="/nowhere/clang")
    assert found.cxx.path == folder / "aarch64-linux-gnu-g++"
    assert found.cc.path == folder / "aarch64-linux-gnu-gcc"


def test_the_identity_has_the_system_and_the_content_of_its_c_library(tools, tmp_path):
    folder = tools()
    before = find(folder).identity
    assert before["cxx-version"].endswith("(aarch64-linux-gnu)")
    (tmp_path / "libc.so.6").write_text("of aarch64, newer")
    assert find(folder).identity["cxx-digest"] != before["cxx-digest"]


def test_a_missing_compiler_is_named_with_what_installs_it(tmp_path, monkeypatch):
    debian = {"ID": "debian"}
    monkeypatch.setattr(toolchain.tool, "os_release", lambda: debian)
    with pytest.raises(NotHereError, match=r"no C\+\+ compiler for aarch64-linux: looked for aarch64-linux-gnu-g\+\+"):
        find(tmp_path)
    with pytest.raises(NotHereError) as caught:
        find(tmp_path)
    assert caught.value.help == "apt-get install g++-aarch64-linux-gnu"


def test_a_compiler_without_a_c_library_is_refused(tools):
    with pytest.raises(NotHereError, match="has no C library of aarch64-linux"):
        find(tools(libc="libc.so.6"))
