"""`--toolchain pinned` on the command line, and the table of what is pinned."""

import lzma
import shutil

import pytest

from builder import toolchain
from builder.cli import compilers_update, run
from builder.environment import compilers
from builder.errors import ToolError
from builder.toml import loads
from tests.given.debian import package
from tests.paths import ROOT

TINY = str(ROOT / "tests/data/kernels/tiny")
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
ours = pytest.mark.skipif(toolchain.system() != "x86_64-linux", reason="the pinned compilers run on x86_64-linux")


@ours
@pytest.mark.parametrize("command", ["build", "shell"])
def test_a_mirror_that_lacks_a_package_is_named_with_the_remedy(tmp_path, monkeypatch, capsys, command):
    monkeypatch.setenv("BUILDER_DEBIAN_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("BUILDER_TOOLCHAIN", "pinned")
    assert run([command, TINY, "--variant", VARIANT, "--store", str(tmp_path / "store")]) == 4
    said = capsys.readouterr().err
    assert f"error: cannot fetch {tmp_path}/mirror/pool/" in said
    assert "help: BUILDER_DEBIAN_MIRROR names a mirror of Debian" in said
    assert list((tmp_path / "store/compilers").iterdir()) == []


@pytest.fixture
def asking(tmp_path, monkeypatch):
    """Return a kernel that asks for the pinned compilers, where there is no mirror to fetch them from."""
    monkeypatch.setenv("BUILDER_DEBIAN_MIRROR", str(tmp_path / "mirror"))
    kernel = shutil.copytree(TINY, tmp_path / "kernel")
    with (kernel / "build.toml").open("a") as file:
        file.write('\n[build]\ntoolchain = "pinned"\n')
    return kernel


@ours
@pytest.mark.parametrize(
    ("option", "variable", "pinned"),
    [(None, "", True), (None, "system", False), ("system", "", False), ("pinned", "system", True)],
)
def test_a_kernel_asks_for_the_pinned_compilers_and_a_user_goes_before_it(
    asking, monkeypatch, option, variable, pinned
):
    monkeypatch.setenv("BUILDER_TOOLCHAIN", variable)
    options = () if option is None else ("--toolchain", option)
    chosen = ["--variant", VARIANT, "--dry-run", "--store", str(asking.parent / "store"), *options]
    assert (run(["build", str(asking), *chosen]) == 4) is pinned


@ours
def test_of_several_kernels_only_those_that_ask_get_them(asking, capsys):
    chosen = ["--backend", "cpu", "--dry-run", "--store", str(asking.parent / "store")]
    other = str(ROOT / "examples/relu-tvm-ffi")
    assert run(["build", other, str(ROOT / "examples/rmsnorm-stable"), *chosen]) == 0
    capsys.readouterr()
    assert run(["build", other, str(asking), *chosen]) == 4
    assert "cannot fetch" in capsys.readouterr().err


def test_a_wheel_without_code_needs_no_compiler(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILDER_DEBIAN_MIRROR", str(tmp_path / "mirror"))
    kernel = str(ROOT / "examples/silu-and-mul")
    options = ["--variant", "torch-cpu", "--toolchain", "pinned", "--dry-run", "--store", str(tmp_path / "store")]
    assert run(["build", kernel, *options]) == 0
    assert "torch-cpu: " in capsys.readouterr().out


def test_doctor_names_them(capsys, tmp_path):
    run(["doctor", "--store", str(tmp_path)])
    line = "for x86_64-linux, aarch64-linux, by --toolchain pinned"
    assert (line in capsys.readouterr().out) is bool(compilers.pinned())


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Return a mirror of one package, which is all that the compilers are made of."""
    path = "pool/main/g/gcc_12.2_amd64.deb"
    digest = package(tmp_path / path, {"./usr/bin/x86_64-linux-gnu-gcc-12": b"\x7fELF odd"})
    index = tmp_path / "dists/bookworm/main/binary-amd64/Packages.xz"
    index.parent.mkdir(parents=True)
    text = f"Package: gcc-12\nDescription: a\n of: b\nFilename: {path}\nSHA256: {digest}\n\n"
    text += f"Package: x\nFilename: pool/x.deb\nSHA256: {'0' * 64}\n\n"
    index.write_bytes(lzma.compress(text.encode()))
    monkeypatch.setattr(compilers_update, "_RUN", ())
    monkeypatch.setattr(compilers_update, "_COMPILE", {"x86_64-linux": ("gcc-12",)})
    return tmp_path


def test_the_table_is_written_from_a_mirror(mirror):
    table = loads(compilers_update.propose(str(mirror)))
    (row,) = table["package"]
    assert (row["path"], row["for"]) == ("pool/main/g/gcc_12.2_amd64.deb", ["x86_64-linux"])
    assert table["target"]["x86_64-linux"]["hash"].startswith("sha256-")
    assert compilers_update.propose(str(mirror)) == compilers_update.propose(str(mirror))


def test_a_mirror_that_serves_another_file_than_its_index_says_is_refused(mirror):
    package(mirror / "pool/main/g/gcc_12.2_amd64.deb", {"./usr/bin/hostile": b""})
    with pytest.raises(ToolError, match="than its index says"):
        compilers_update.propose(str(mirror))


def test_a_package_that_is_gone_is_named(mirror, monkeypatch):
    monkeypatch.setattr(compilers_update, "_RUN", ("libc6",))
    with pytest.raises(ToolError, match="has no package 'libc6'"):
        compilers_update.propose(str(mirror))
