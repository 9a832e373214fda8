"""What a test needs beyond the packages of the README: without it the test skips, and says what installs it.

`make test` passes on a machine with the README's packages alone. Where things are known to be installed, as in CI,
BUILDER_TESTS_REQUIRE names the tools, and a skip for lack of one of them is a failure (`conftest.py`).
"""

import os
import re
import shutil
import sysconfig
from pathlib import Path

import pytest

from builder.toolchain.tool import installing

TOOLS = {
    "aarch64-linux-gnu-g++": "g++-aarch64-linux",
    "chromium": "chromium",
    "clang": "clang",
    "clang++": "clang",
    "diffoscope": "diffoscope",
    "fish": "fish",
    "g++": "g++",
    "gcc": "g++",
    "git": "git",
    "hipcc": "rocm",
    "ld.gold": "binutils",
    "ld.lld": "lld",
    "ld.mold": "mold",
    "ld64.lld": "lld",
    "llvm-readobj": "clang",
    "nix": "nix",
    "nix-instantiate": "nix",
    "npm": "npm",
    "qemu-aarch64-static": "qemu",
    "rclone": "rclone",
    "redis-server": "redis",
    "setsid": "util-linux",
    "sshd": "sshd",
    "unshare": "util-linux",
    "zsh": "zsh",
}
"""What has each program, by its name in `builder/data/distributions.toml`."""

_PLACES = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
"""Where programs are looked for: a server is not on everybody's PATH."""


def why_not(*programs):
    """Say which of these programs is not here, and what installs it; empty when all are."""
    missing = next((name for name in programs if find(name) is None), None)
    return "" if missing is None else lacking(missing, TOOLS[missing])


def lacking(what, tool):
    """Return the reason of a skip for lack of something that `tool` has."""
    return f"no {what} [{tool}]: {installing(tool)}"


def find(program):
    """Return the path of a program, or of the same with a version in its name; None where there is none."""
    names = [program, *(f"{program}-{version}" for version in range(22, 13, -1))]
    return next((path for name in names if (path := shutil.which(name, path=_PLACES))), None)


def program(name):
    """Return the path of a program; the test that asks skips where there is none."""
    return find(name) or pytest.skip(why_not(name))


def only_with(*programs):
    """Return the mark of a test, or of a module, that runs these programs."""
    reason = why_not(*programs)
    return pytest.mark.skipif(bool(reason), reason=reason or "-")


headers_of_python = pytest.mark.skipif(
    not (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file(),
    reason=lacking("headers of Python", "python-headers"),
)
"""The mark of a test that compiles against Python."""


def refused(reason, required):
    """Say why a test must not be skipped for this reason, where some tools are required; empty when it may."""
    if not required:
        return ""
    if re.search(r"could not import|is not installed beside the tests", reason):
        return f"skipped, though `make test` installs what it needs: {reason}"
    tool = re.search(r"\[([^]]+)\]: ", reason)
    if tool is not None and tool[1] in required:
        return f"skipped, though BUILDER_TESTS_REQUIRE has '{tool[1]}': {reason}"
    return ""
