"""qemu and a root: found by their names, or what is missing is said."""

import pytest

from builder.errors import NotHereError
from builder.toolchain import emulator
from builder.toolchain.tool import Search
from tests.given.files import program


@pytest.fixture
def machine(tmp_path):
    """Return a function that gives what qemu is found by."""

    def make(*, qemu=None, python=None, root=None):
        (tmp_path / "root/usr/bin").mkdir(parents=True, exist_ok=True)
        for path in (qemu and tmp_path / qemu, python and tmp_path / "root/usr/bin" / python):
            if path:
                program(path, "#!/bin/sh\n")
        named = tmp_path / "root" if root is None else root
        environ = {"PATH": str(tmp_path), "QEMU_LD_PREFIX": str(named)}
        return Search(environ=environ, digest=lambda path: path.name)

    return make


@pytest.mark.parametrize("name", ["qemu-aarch64-static", "qemu-aarch64"])
def test_a_python_of_the_root_is_run_by_qemu(machine, tmp_path, name):
    found = emulator.find(machine(qemu=name, python="python3.11"), "aarch64-linux", python="cp311")
    assert found.command == (str(tmp_path / name), "-L", str(tmp_path / "root"))
    assert found.python == tmp_path / "root/usr/bin/python3.11"


def test_no_qemu_is_said(machine):
    with pytest.raises(NotHereError, match="no qemu-aarch64 is on PATH"):
        emulator.find(machine(python="python3.11"), "aarch64-linux", python="cp311")


@pytest.mark.parametrize("root", [None, "", "relative", "/nonexistent"])
def test_a_root_without_the_python_of_the_environment_is_said(machine, root):
    with pytest.raises(NotHereError, match=r"QEMU_LD_PREFIX names no folder with the Python 3\.11 of aarch64-linux"):
        emulator.find(machine(qemu="qemu-aarch64", root=root), "aarch64-linux", python="cp311")
