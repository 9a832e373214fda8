"""A kernel with foreign and generated sources, built with real tools: the same bytes each time, and from Nix."""

import hashlib
import json
import subprocess
import zipfile

import pytest

from tests.given.files import only_wheel
from tests.given.kernels import PLAIN_CELL, linux
from tests.given.repositories import git
from tests.integration import elsewhere, nix_tools

pytestmark = [
    pytest.mark.cmake,
    linux,
]


@pytest.fixture
def origins(tmp_path):
    (tmp_path / "origins").mkdir()
    return elsewhere.origins(tmp_path / "origins")


@pytest.fixture
def build(builder, tmp_path):
    def run(kernel, *options, output="dist", **more):
        own = ("--variant", PLAIN_CELL, "--no-cache", "--output", tmp_path / output)
        return builder("build", kernel, *own, *options, **more)

    return run


@pytest.mark.slow
def test_it_is_fetched_generated_and_built_to_the_same_bytes_and_then_without_a_network(build, origins, tmp_path):
    rev, digest = origins
    kernel = elsewhere.kernel(tmp_path / "one", rev=rev, digest=digest)
    refused = build(kernel)
    assert refused.returncode == 4
    assert f"cannot fetch {rev} of https://example.org/cut.git" in refused.stderr
    first = build(kernel, env=elsewhere.mirrors(tmp_path / "origins"))
    assert first.returncode == 0, first.stderr
    (tmp_path / "origins").rename(tmp_path / "gone")
    other = elsewhere.kernel(tmp_path / "another folder", rev=rev, digest=digest)
    again = build(other, "--rebuild", output="again", env={"TMPDIR": str(tmp_path), "PYTHONHASHSEED": "7"})
    assert again.returncode == 0, again.stderr
    wheel = only_wheel(tmp_path / "dist")
    assert wheel.read_bytes() == only_wheel(tmp_path / "again").read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        library = archive.read(next(name for name in names if name.endswith(".so")))
        bill = json.loads(archive.read(next(name for name in names if name.endswith(".cdx.json"))))
    assert b"sources/cut/include/cut/cut.h" in library
    assert b"sources/fmt/src/fmt.cpp" in library
    assert b"/tmp/" not in library
    assert str(tmp_path).encode() not in library
    assert {"cut", "fmt"} <= {part["name"] for part in bill["components"]}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("raise ValueError('no such head size')", "ValueError: no such head size", id="exception"),
        pytest.param(
            elsewhere.SCRIPT + "open('other.h', 'w')",
            "it wrote 'other.h', which is not among",
            id="more",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "import socket\nsocket.create_connection(('127.0.0.1', 9), 5)",
            "tools/make.py: error:",
            id="network",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_script_that_fails_is_told_as_a_compiler_is(build, origins, tmp_path, script, said):
    kernel = elsewhere.kernel(tmp_path / "bad", rev=origins[0], digest=origins[1], script=script)
    done = build(kernel, env=elsewhere.mirrors(tmp_path / "origins"))
    assert done.returncode == 4
    lines = done.stderr.partition("\nerror: ")[2].splitlines()
    assert lines[0].endswith("the build failed")
    assert lines[1].startswith("tools/make.py: error: ")
    assert said in done.stderr


@pytest.mark.nix
@pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-")
def test_nix_makes_the_same_bytes(build, origins, tmp_path):
    rev, digest = origins
    kernel = elsewhere.kernel(tmp_path / "one", rev=rev, digest=digest)
    assert build(kernel, env=elsewhere.mirrors(tmp_path / "origins")).returncode == 0
    # Nix has no mirrors: git's own settings name the repository, and the archive is brought by hand.
    home = tmp_path / "home"
    home.mkdir()
    place = f"file://{tmp_path}/origins/cut.git"
    git(home, "config", "--file", ".gitconfig", f"url.{place}.insteadOf", elsewhere.URL)
    archive = tmp_path / "origins/dl/fmt-1.0.tar.gz"
    subprocess.run(["nix-store", "--add-fixed", "sha256", str(archive)], check=True, capture_output=True)
    done = build(kernel, "--engine", "nix", "--package-set", "host", output="nix", env={"HOME": str(home)})
    assert done.returncode == 0, done.stderr
    digests = {hashlib.sha256(only_wheel(tmp_path / name).read_bytes()).hexdigest() for name in ("dist", "nix")}
    assert len(digests) == 1
