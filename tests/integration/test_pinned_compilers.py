"""The pinned compilers, fetched from a mirror: wheels are the same from every store, without a compiler."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.environment import compilers, debian
from builder.environment.download import Fetching, UnreachableError
from builder.errors import NotHereError
from builder.store import Store
from tests.given.kernels import PLAIN, PLAIN_CELL
from tests.paths import ROOT

HERE, CROSS = "x86_64-linux", "aarch64-linux"
SOURCE = """
#include <regex>
#include <vector>
__attribute__((visibility("default"))) int at(const std::vector<int>& values, int i) { return values[i]; }
bool is_word(const char* text) { return std::regex_match(text, std::regex("\\\\w+")); }
"""

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.skipif(HERE not in compilers.pinned(), reason="the pinned compilers run on x86_64-linux"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folders with the compilers for both systems."""
    store = Store(tmp_path_factory.mktemp("compilers") / "store")
    fetching = Fetching(store=store, environ=dict(os.environ), progress=lambda _: None)
    try:
        return {target: compilers.folder(target, fetching) for target in (HERE, CROSS)}
    except (UnreachableError, NotHereError) as error:
        pytest.skip(f"no mirror of Debian: {error}")


@pytest.fixture
def without_compilers(tmp_path):
    """Return a PATH with what a build runs, and no compiler."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "env", "git", "apt-get", "dpkg", "unshare", "mount"):
        if (found := shutil.which(name)) is not None:
            (programs / name).symlink_to(found)
    return str(programs)


def test_a_wheel_is_the_same_from_two_stores_without_a_compiler(folders, without_compilers, tmp_path):
    found = {}
    for name in ("one", "two"):
        store = tmp_path / name / "store"
        store.mkdir(parents=True)
        if name == "one":  # the other fetches them
            shutil.copytree(folders[HERE].parent, store / "compilers", symlinks=True)
        command = [
            sys.executable,
            "-m",
            "builder",
            "build",
            PLAIN,
            "--variant",
            PLAIN_CELL,
            "--toolchain",
            "pinned",
            "--json",
        ]
        command += ["--store", store, "--output", tmp_path / name / "dist", "--no-cache"]
        environ = {**os.environ, "PATH": without_compilers, "PYTHONPATH": str(ROOT)}
        mirror = " ".join(debian.mirrors(os.environ))
        done = subprocess.run(
            command, env={**environ, "BUILDER_DEBIAN_MIRROR": mirror}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found[name] = json.loads(done.stdout)[0]
    assert found["one"]["sha256"] == found["two"]["sha256"]


def test_a_library_has_the_bytes_of_debians_own_compiler(folders, tmp_path):
    own = shutil.which("g++-12")
    version = "12.2.0-14+deb12u1"
    if (
        own is None
        or version not in subprocess.run([own, "--version"], capture_output=True, text=True, check=True).stdout
    ):
        pytest.skip(f"no g++ {version} to compare with")
    pinned = folders[HERE] / "usr/bin/x86_64-linux-gnu-g++-12"
    for number, compiler in enumerate((own, pinned)):
        _compile(compiler, tmp_path, f"{number}.so", path=os.environ["PATH"])
    assert (tmp_path / "0.so").read_bytes() == (tmp_path / "1.so").read_bytes()


def test_a_library_for_aarch64_is_the_same_from_two_folders(folders, tmp_path):
    first = folders[CROSS]
    second = Path(shutil.copytree(first, tmp_path / "deep/usr/elsewhere", symlinks=True))
    for number, root in enumerate((first, second)):
        _compile(root / "usr/bin/aarch64-linux-gnu-g++", tmp_path, f"{number}.so")
    content = (tmp_path / "0.so").read_bytes()
    assert content == (tmp_path / "1.so").read_bytes()
    assert content[18:20] == b"\xb7\x00"  # EM_AARCH64
    assert b"/usr/aarch64-linux-gnu/include/c++/12/" in content  # as on Debian, in an assertion
    assert str(first).encode() not in content


def _compile(compiler, folder, target, path="/nonexistent"):
    (folder / "a.cpp").write_text(SOURCE)
    command = [compiler, "-O2", "-fPIC", "-shared", "-D_GLIBCXX_ASSERTIONS", "a.cpp", "-o", target]
    subprocess.run(command, cwd=folder, check=True, env={"PATH": path, "LC_ALL": "C"})
