"""A tree from an archive that may be hostile: what is no source tree is refused, and nothing is written outside."""

import io
import stat
import tarfile
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.errors import ToolError
from builder.make import source_trees


def tar(path, *members, mode="w:gz"):
    """Write an archive of (name, content) and (name, type, target)."""
    with tarfile.open(path, mode) as archive:
        for name, *rest in members:
            info = tarfile.TarInfo(name)
            if isinstance(rest[0], bytes) and len(rest) == 1 and len(rest[0]) != 1:
                info.size = len(rest[0])
                archive.addfile(info, io.BytesIO(rest[0]))
                continue
            info.type = rest[0]
            info.linkname = rest[1] if len(rest) > 1 else ""
            archive.addfile(info)
    return path


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, (content, mode) in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return path


def unpacked(archive, target):
    source_trees.unpack(archive, target, name="it")
    return sorted(path.relative_to(target).as_posix() for path in target.rglob("*"))


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w"])
def test_a_single_folder_at_the_top_is_stripped(tmp_path, mode):
    archive = tar(tmp_path / "a", ("top/a.h", b"int a;"), ("top/b/c.h", b"int c;"), mode=mode)
    assert unpacked(archive, tmp_path / "t") == ["a.h", "b", "b/c.h"]
    assert (tmp_path / "t/a.h").read_bytes() == b"int a;"


def test_a_folder_beside_a_file_stays(tmp_path):
    assert unpacked(tar(tmp_path / "a", ("top/a.h", b"ab"), ("LICENSE", b"ab")), tmp_path / "t") == [
        *("LICENSE", "top", "top/a.h")
    ]


def test_a_zip_keeps_programs_and_links(tmp_path):
    archive = zipped(
        tmp_path / "a.zip",
        **{"top/run": ("#!", stat.S_IFREG | 0o755), "top/link": ("run", stat.S_IFLNK | 0o777), "top/a.h": ("a", 0)},
    )
    assert unpacked(archive, tmp_path / "t") == ["a.h", "link", "run"]
    assert (tmp_path / "t/run").stat().st_mode & 0o111
    assert (tmp_path / "t/link").read_text() == "#!"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        pytest.param([("/etc/x", b"ab")], "leaves the tree", id="absolute"),
        pytest.param([("../x", b"ab")], "leaves the tree", id="above"),
        pytest.param([("a/../../x", b"ab")], "leaves the tree", id="above later"),
        pytest.param([("a\nb", b"ab")], "no plain path", id="newline"),
        pytest.param([("a\\b", b"ab")], "no plain path", id="backslash"),
        pytest.param([("a", tarfile.SYMTYPE, "/etc/passwd"), ("b", b"ab")], "outside of the tree", id="absolute link"),
        pytest.param([("a", tarfile.SYMTYPE, "../../x"), ("b", b"ab")], "outside of the tree", id="link above"),
        pytest.param([("d", tarfile.SYMTYPE, "/tmp"), ("d/x", b"ab")], "is there twice", id="through a link"),
        pytest.param(
            [("a/b/l", tarfile.SYMTYPE, "../.."), ("m", tarfile.SYMTYPE, "a/b/l/../x"), ("y", b"ab")],
            "outside of the tree",
            id="link through a link",
        ),
        pytest.param([("a", tarfile.LNKTYPE, "/etc/passwd"), ("b", b"ab")], "leaves the tree", id="hard link"),
        pytest.param([("a", tarfile.LNKTYPE, "b")], "no file of the archive", id="hard link to nothing"),
        pytest.param([("a", tarfile.CHRTYPE)], "neither a file", id="device"),
        pytest.param([("a", tarfile.FIFOTYPE)], "neither a file", id="pipe"),
    ],
)
def test_what_no_source_tree_has_is_refused(tmp_path, members, why):
    archive = tar(tmp_path / "a.tar.gz", *members)
    with pytest.raises(ToolError, match=why):
        unpacked(archive, tmp_path / "in/t")
    assert {path.name for path in tmp_path.iterdir()} <= {"a.tar.gz", "in"}


def test_a_file_and_a_folder_of_one_name_are_refused(tmp_path):
    with pytest.raises(ToolError, match="cannot be unpacked"):
        unpacked(tar(tmp_path / "a", ("a", b"ab"), ("a/b", b"ab")), tmp_path / "t")


def test_a_bomb_is_refused_before_it_is_written(tmp_path):
    bomb = zipped(tmp_path / "a.zip", a=("", 0))
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(200 << 20))
    with pytest.raises(ToolError, match="MiB when unpacked"):
        unpacked(bomb, tmp_path / "t")
    assert list((tmp_path / "t").iterdir()) == []


def test_an_encrypted_archive_is_refused(tmp_path):
    archive = zipped(tmp_path / "a.zip", a=("secret", 0))
    content = bytearray(archive.read_bytes())
    content[6] |= 1  # in the header of the file, and in the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(content)
    with pytest.raises(ToolError, match="encrypted"):
        unpacked(archive, tmp_path / "t")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 400), value=st.integers(0, 255), kind=st.sampled_from(["gz", "xz", "zip"]))
def test_a_damaged_archive_is_an_error_or_a_tree(tmp_path_factory, at, value, kind):
    folder = tmp_path_factory.mktemp("damaged")
    if kind == "zip":
        archive = zipped(folder / "a", **{"top/a.h": ("int a;", 0)})
    else:
        archive = tar(folder / "a", ("top/a.h", b"int a;"), ("top/l", tarfile.SYMTYPE, "a.h"), mode=f"w:{kind}")
    content = bytearray(archive.read_bytes())
    content[at % len(content)] = value
    archive.write_bytes(content)
    try:
        unpacked(archive, folder / "t")
    except ToolError as error:
        assert str(error)  # noqa: PT017  not every example is refused


def test_a_digest_is_that_of_names_kinds_and_contents(tmp_path):
    (tmp_path / "t/b").mkdir(parents=True)
    (tmp_path / "t/a").write_text("a")
    first = source_trees.digest(tmp_path / "t")
    (tmp_path / "t/a").touch()
    assert source_trees.digest(tmp_path / "t") == first
    found = {first}
    for change in (
        lambda: (tmp_path / "t/a").chmod(0o755),
        lambda: (tmp_path / "t/a").write_text("b"),
        lambda: (tmp_path / "t/a").rename(tmp_path / "t/c"),
        lambda: (tmp_path / "t/l").symlink_to("c"),
    ):
        change()
        found.add(source_trees.digest(tmp_path / "t"))
    assert len(found) == 5
