"""Packages of Debian are unpacked to files that may lie anywhere; damaged and hostile ones are refused."""

import shutil
import subprocess

import pytest

from builder.environment import debian
from builder.errors import ToolError
from tests.given.debian import package


@pytest.fixture
def unpacked(tmp_path):
    def unpack(members, *, wanted=lambda _: True, compressed="xz"):
        package(tmp_path / "a.deb", members, compressed=compressed)
        debian.unpack(tmp_path / "a.deb", tmp_path / "root", wanted=wanted)
        return tmp_path / "root"

    return unpack


def test_files_and_links_are_below_usr_wherever_the_root_is(unpacked, tmp_path):
    root = unpacked(
        {
            "./usr/bin/gcc": b"#! program",
            "./lib/x/libc.so.6": b"library",
            "./usr/lib/x/libm.so": "/lib/x/libm.so.6",
            "./lib/x/libm.so.6": b"math",
            "./usr/lib/gcc/libc.so": "../x/libc.so.6",
        }
    )
    moved = root.rename(tmp_path / "elsewhere")
    assert (moved / "usr/bin/gcc").stat().st_mode & 0o777 == 0o755
    assert (moved / "usr/lib/x/libc.so.6").stat().st_mode & 0o777 == 0o644
    assert (moved / "usr/lib/x/libm.so").read_bytes() == b"math"
    assert (moved / "usr/lib/gcc/libc.so").read_bytes() == b"library"
    assert not (moved / "lib").exists()


def test_what_is_not_wanted_is_left_out(unpacked):
    root = unpacked({"./usr/bin/a": b"", "./usr/share/doc": b""}, wanted=lambda path: path == "usr/bin/a")
    assert [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()] == ["usr/bin/a"]


@pytest.mark.parametrize(
    ("members", "said"),
    [({"../../etc/passwd": b""}, "it has '../../etc/passwd'"), ({"./usr/a": "../../../b"}, "it has '/usr/../../../b'")],
    ids=["a file", "a link"],
)
def test_what_leads_out_of_the_root_is_refused(unpacked, tmp_path, members, said):
    with pytest.raises(ToolError, match="cannot be unpacked") as raised:
        unpacked(members)
    assert said in raised.value.message
    assert not (tmp_path.parent / "etc").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"!<arch>\n",
        b"no archive",
        b"!<arch>\n" + b"x" * 60,
        b"!<arch>\n" + b"data.tar.xz".ljust(48) + b"9".ljust(12),
    ],
    ids=["empty", "no members", "another file", "no number", "no tar"],
)
def test_a_damaged_package_is_refused(tmp_path, content):
    (tmp_path / "a.deb").write_bytes(content)
    with pytest.raises(ToolError, match=r"'a\.deb' cannot be unpacked"):
        debian.unpack(tmp_path / "a.deb", tmp_path / "root", wanted=lambda _: True)


def test_a_truncated_package_is_refused(tmp_path):
    package(tmp_path / "a.deb", {"./usr/bin/a": bytes(range(256)) * 4000})
    content = (tmp_path / "a.deb").read_bytes()
    (tmp_path / "a.deb").write_bytes(content[:-200])
    with pytest.raises(ToolError, match="cannot be unpacked"):
        debian.unpack(tmp_path / "a.deb", tmp_path / "root", wanted=lambda _: True)


def test_another_compression_is_named(unpacked):
    with pytest.raises(ToolError, match=r"'data\.tar\.gz' is compressed in another way than xz"):
        unpacked({"./usr/bin/a": b""}, compressed="gz")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb, to make a package with")
def test_what_dpkg_packs_is_unpacked(tmp_path):
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.org>\nDescription: a\n"
    )
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/a").write_bytes(b"#! program")
    subprocess.run(
        ["dpkg-deb", "-Zxz", "--root-owner-group", "--build", tree, tmp_path / "a.deb"], check=True, capture_output=True
    )
    debian.unpack(tmp_path / "a.deb", tmp_path / "root", wanted=lambda _: True)
    assert (tmp_path / "root/usr/bin/a").read_bytes() == b"#! program"
