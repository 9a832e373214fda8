import io
import os
import stat
import time
import zipfile
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.files import write_atomic
from builder.wheel import archive
from builder.wheel.archive import Bytes, Wheel, WheelError, pack, unpack

INFO = "relu-1.0.0.dist-info"
NAME = "relu-1.0.0-py3-none-any.whl"
MEMBERS = {
    "relu/b.py": Bytes(b"b"),
    "relu/a.so": Bytes(b"a", mode=0o755),
    f"{INFO}/METADATA": Bytes(b"Metadata-Version: 2.4\n"),
    f"{INFO}/WHEEL": Bytes(b"Wheel-Version: 1.0\n"),
}


def written(tmp_path, members, *, name=NAME):
    path = tmp_path / name
    path.write_bytes(pack(members, dist_info=INFO))
    return path


def zipped(tmp_path, *names, **info):
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            for key, value in info.items():
                setattr(entry, key, value)
            archive.writestr(entry, b"content")
    return path


def test_the_order_of_members_does_not_change_the_bytes():
    again = dict(reversed(MEMBERS.items()))
    assert pack(MEMBERS, dist_info=INFO) == pack(again, dist_info=INFO)


def test_the_time_zone_does_not_change_the_bytes(monkeypatch):
    first = pack(MEMBERS, dist_info=INFO, epoch=1_600_000_000)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        assert pack(MEMBERS, dist_info=INFO, epoch=1_600_000_000) == first
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_library_that_installs_wheels_finds_what_record_says(tmp_path):
    sources = pytest.importorskip("installer.sources")
    odd = {'relu/a "b", c.py': Bytes(b"c"), "relu/größe.py": Bytes(b"d")}
    with sources.WheelFile.open(written(tmp_path, MEMBERS | odd)) as wheel:
        wheel.validate_record()
        names = {record[0] for record, _, _ in wheel.get_contents()}
    assert names == {*MEMBERS, *odd, f"{INFO}/RECORD"}


def test_record_is_last_and_names_every_member(tmp_path):
    found = Wheel.read(written(tmp_path, MEMBERS)).members
    assert list(found)[-1] == f"{INFO}/RECORD"
    lines = found[f"{INFO}/RECORD"].read().decode().splitlines()
    assert {line.split(",")[0] for line in lines} == set(found)


def test_a_library_keeps_its_executable_bit_and_nothing_else_does(tmp_path):
    found = Wheel.read(written(tmp_path, MEMBERS)).members
    assert {name: member.mode for name, member in found.items() if name.startswith("relu/")} == {
        "relu/a.so": 0o755,
        "relu/b.py": 0o644,
    }


def test_a_member_is_a_plain_file_of_unix_whatever_packs_it(tmp_path):
    with zipfile.ZipFile(written(tmp_path, MEMBERS)) as packed:
        found = {info.filename: (info.create_system, info.external_attr >> 16) for info in packed.infolist()}
    unix = 3
    assert found.pop("relu/a.so") == (unix, stat.S_IFREG | 0o755)
    assert set(found.values()) == {(unix, stat.S_IFREG | 0o644)}


def test_a_wheel_unpacks_to_its_members(tmp_path):
    path = written(tmp_path, MEMBERS)
    unpack(Wheel.read(path), tmp_path / "site")
    assert (tmp_path / "site/relu/b.py").read_bytes() == b"b"
    assert stat.S_IMODE((tmp_path / "site/relu/a.so").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../outside.py", "relu/../../outside.py", "C:/outside.py", "relu\\outside.py", "relu//x.py"],
)
def test_a_name_that_leaves_the_directory_is_refused(tmp_path, name):
    with pytest.raises(WheelError, match="unsafe name"):
        Wheel.read(zipped(tmp_path, name))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_double_member_is_refused(tmp_path):
    with pytest.raises(WheelError, match=r"has 'relu/a\.py' twice"):
        Wheel.read(zipped(tmp_path, "relu/a.py", "relu/a.py"))


def test_a_link_is_refused(tmp_path):
    with pytest.raises(WheelError, match="not a plain file"):
        Wheel.read(zipped(tmp_path, "relu/a.py", external_attr=(stat.S_IFLNK | 0o777) << 16))


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = zipped(tmp_path, "relu/a.py", "relu/b.py")
    content = bytearray(path.read_bytes())
    # The central directory says where a member begins: 42 bytes behind its signature.
    at = content.rindex(b"PK\x01\x02") + 42
    content[at : at + 4] = bytes(4)
    path.write_bytes(content)
    with pytest.raises(WheelError, match="lies over another member"):
        Wheel.read(path)


def test_a_bomb_is_refused(tmp_path):
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("relu/zeros", b"\0" * 4_000_000)
    content = bytearray(path.read_bytes())
    # The central directory says how much a member unpacks to: 24 bytes behind its signature.
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = (3_000_000_000).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(WheelError, match="more than the 268435456 that are read"):
        Wheel.read(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\x05\x06" + b"\xff" * 18], ids=repr)
def test_a_file_that_is_no_wheel_is_refused(tmp_path, content):
    path = tmp_path / NAME
    path.write_bytes(content)
    with pytest.raises(WheelError):
        Wheel.read(path)


def test_a_name_that_is_no_wheel_name_is_refused(tmp_path):
    (tmp_path / "relu.zip").touch()
    with pytest.raises(WheelError, match="not named like a wheel"):
        Wheel.read(tmp_path / "relu.zip")
    with pytest.raises(WheelError, match=r"relu\.tar' does not exist"):
        Wheel.read(tmp_path / "relu.tar")


def test_a_damaged_member_is_an_error_and_not_a_traceback(tmp_path):
    path = written(tmp_path, {**MEMBERS, "relu/big": Bytes(bytes(range(256)) * 40)})
    found = Wheel.read(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"relu/big") + 20
    content[at : at + 30] = b"\xff" * 30
    path.write_bytes(content)
    with pytest.raises(WheelError, match="damaged at 'relu/big'"):
        found.members["relu/big"].read()


@given(position=st.integers(0, 400), value=st.integers(0, 255))
def test_a_changed_byte_never_crashes_the_reader(tmp_path_factory, position, value):
    content = bytearray(pack(MEMBERS, dist_info=INFO))
    content[position % len(content)] = value
    path = tmp_path_factory.mktemp("fuzz") / NAME
    path.write_bytes(content)
    try:
        for member in Wheel.read(path).members.values():
            member.read()
    except WheelError:
        pass


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_the_epoch_of_a_zip_is_the_floor():
    early = pack(MEMBERS, dist_info=INFO, epoch=0)
    assert early == pack(MEMBERS, dist_info=INFO, epoch=archive.EPOCH)


def test_a_zip_begins_in_1980_and_ends_in_2107():
    assert time.gmtime(archive.EPOCH)[:6] == (1980, 1, 1, 0, 0, 0)
    assert time.gmtime(archive.LATEST)[:6] == (2107, 12, 31, 23, 59, 58)


@given(contents=st.lists(st.binary(max_size=300), min_size=1, max_size=5), mode=st.sampled_from((0o644, 0o755)))
def test_a_packed_wheel_has_the_bytes_that_zipfile_writes(contents, mode):
    members = {f"relu/größe-{number}.so": Bytes(content, mode) for number, content in enumerate(contents)}
    found = pack(members, dist_info=INFO)
    again = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(found)) as read, zipfile.ZipFile(again, "w") as write:
        assert read.testzip() is None
        for each in read.infolist():
            info = zipfile.ZipInfo(each.filename, each.date_time)
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, each.external_attr
            write.writestr(info, read.read(each), compresslevel=6)
    assert found == again.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_a_member_comes_into_another_wheel_as_it_is_compressed(tmp_path, method):
    content = b"content" * 99
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w", compression=method, compresslevel=1) as archive:
        archive.writestr("relu/a.py", content)
    member = Bytes.of(Wheel.read(path).members["relu/a.py"])
    again = written(tmp_path, {"relu/b.py": member}, name=f"again-{NAME}")
    with zipfile.ZipFile(again) as archive:
        info = archive.getinfo("relu/b.py")
        assert (info.compress_type, archive.read(info)) == (method, content)
    assert member.packed.content in again.read_bytes()
    assert member.packed.content in path.read_bytes()


def test_a_member_that_is_damaged_is_not_taken_over(tmp_path):
    path = written(tmp_path, {"relu/big": Bytes(bytes(range(256)) * 99)})
    member = Wheel.read(path).members["relu/big"]
    content = bytearray(path.read_bytes())
    at = content.index(b"relu/big") + 20
    content[at : at + 30] = b"\xff" * 30
    path.write_bytes(content)
    with pytest.raises(WheelError, match="damaged at 'relu/big'"):
        Bytes.of(member)
