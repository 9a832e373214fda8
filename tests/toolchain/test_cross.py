"""The compilers for another system: found by their names, told by their content, and refused without a C library."""

import pytest

from builder import toolchain
from builder.config import Backend
from builder.errors import NotHereError
from tests.given.files import program

COMPILER = """#!/bin/sh
case "$1" in
  --version) echo "{name} (Debian 12.2.0) 12.2.0" ;;
  -dumpmachine) echo aarch64-linux-gnu ;;
  -print-file-name=libc.so.6) echo {libc} ;;
  -print-prog-name=*|-print-file-name=*) echo "${{1#*=}}" ;;
esac
"""


@pytest.fixture
def tools(tmp_path, request):
    """Return a folder with cross compilers, which have a C library or what they are to say; the shell runs them."""
    (tmp_path / "libc.so.6").write_text("of aarch64")
    libc = getattr(request, "param", tmp_path / "libc.so.6")
    for name in ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-gcc"):
        program(tmp_path / "bin" / name, COMPILER.format(name=name, libc=libc))
    return tmp_path / "bin"


def find(folder, **environ):
    return toolchain.find(Backend.CPU, environ={"PATH": str(folder), **environ}, target="aarch64-linux")


def test_both_compilers_are_those_of_the_other_system_whatever_names_the_ones_of_this(tools):
    found = find(tools, CXX="/nowhere/clang++", CC="/nowhere/clang")
    assert found.cxx.path == tools / "aarch64-linux-gnu-g++"
    assert found.cc.path == tools / "aarch64-linux-gnu-gcc"


def test_the_identity_has_the_system_and_the_content_of_its_c_library(tools, tmp_path):
    before = find(tools).identity
    assert before["cxx-version"].endswith("(aarch64-linux-gnu)")
    (tmp_path / "libc.so.6").write_text("of aarch64, newer")
    assert find(tools).identity["cxx-digest"] != before["cxx-digest"]


def test_a_missing_compiler_is_named_with_what_installs_it(tmp_path, monkeypatch):
    debian = {"ID": "debian"}
    monkeypatch.setattr(toolchain.tool, "os_release", lambda: debian)
    with pytest.raises(NotHereError, match=r"no C\+\+ compiler for aarch64-linux: looked for aarch64-linux-gnu-g\+\+"):
        find(tmp_path)
    with pytest.raises(NotHereError) as caught:
        find(tmp_path)
    assert caught.value.help == "apt-get install g++-aarch64-linux-gnu"


@pytest.mark.parametrize("tools", ["libc.so.6"], indirect=True)
def test_a_compiler_without_a_c_library_is_refused(tools):
    with pytest.raises(NotHereError, match="has no C library of aarch64-linux"):
        find(tools)
