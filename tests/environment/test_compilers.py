"""Pinned compilers in the store: fetched once from any mirror, verified each time, the same files wherever it is."""

import os
import shutil
import subprocess

import pytest

from builder import toolchain
from builder.environment import compilers, debian
from builder.environment.compilers import PinnedCompilers, PinnedPackage
from builder.environment.download import Fetching
from builder.errors import BuilderError, NotHereError, ToolError, WrongHashError
from builder.hashes import nar
from builder.store import Store, StoreError
from builder.store.items import collect, items
from tests.given.calls import raising
from tests.given.debian import package

HERE = toolchain.system()
TRIPLE = f"{HERE.partition('-')[0]}-linux-gnu"
ELF = b"\x7fELF odd"
LOADER = b"""#!/bin/sh
# Stands for the loader: says how it was started.
printf '%s\\n' "$@"
"""
pytestmark = pytest.mark.skipif(not HERE.endswith("-linux"), reason="pinned compilers run on Linux")


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Return a mirror with packages of made-up compilers, which are pinned."""
    members = {
        f"./usr/bin/{TRIPLE}-g++-12": ELF,
        f"./usr/bin/{TRIPLE}-as": ELF,
        f"./usr/lib/gcc/{TRIPLE}/12/cc1plus": ELF,
        "./usr/include/a.h": b"header",
        "./usr/share/doc/a": b"text",
    }
    path, loader = "pool/main/g/g++_12_amd64.deb", "pool/main/l/libc6_2_amd64.deb"
    digest = package(tmp_path / "mirror" / path, members)
    loads = package(tmp_path / "mirror" / loader, {"./lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": LOADER})
    packages = (PinnedPackage(path=path, sha256=digest), PinnedPackage(path=loader, sha256=loads))
    blank = PinnedCompilers(target=HERE, version="12", hash="", packages=packages)
    root = tmp_path / "expected"
    for each in packages:
        compilers.debian.unpack(tmp_path / "mirror" / each.path, root, wanted=compilers.is_wanted)
    compilers.arrange(root, blank)
    pins = {HERE: PinnedCompilers(target=HERE, version="12", hash=nar(root, links=True), packages=packages)}
    monkeypatch.setattr(compilers, "pinned", lambda: pins)
    return tmp_path / "mirror"


@pytest.fixture
def kept(tmp_path, mirror):
    """Return the folder of the compilers in a store."""

    def make(place=mirror, *, store="store", system=HERE):
        environ = {"PATH": "/usr/bin:/bin", debian.MIRROR: str(place)}
        fetching = Fetching(store=Store(tmp_path / store), environ=environ, progress=lambda _: None)
        return compilers.folder(system, fetching)

    return make


def test_a_program_is_started_through_what_is_pinned_with_it_wherever_the_store_is(kept, tmp_path):
    first = kept()
    moved = shutil.move(first, tmp_path / "usr" / "moved")
    program = moved / f"usr/bin/{TRIPLE}-g++"
    said = subprocess.run([program, "-c", "a b.cpp"], capture_output=True, text=True, check=True).stdout.splitlines()
    libraries = f"{moved}/usr/lib/x86_64-linux-gnu"
    assert said == [
        *("--argv0", str(program), "--library-path", libraries, f"{moved}/usr/bin/{TRIPLE}-g++-12.bin"),
        *(f"--sysroot={moved}", f"-ffile-prefix-map={moved}=", "-c", "a b.cpp"),
    ]
    part = moved / f"usr/lib/gcc/{TRIPLE}/12/cc1plus"
    said = subprocess.run([part, "-quiet"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == ["--argv0", str(part), "--library-path", libraries, f"{part}.bin", "-quiet"]
    assert (moved / f"usr/{TRIPLE}/bin/as").resolve() == moved / f"usr/bin/{TRIPLE}-as"
    assert not (moved / "usr/share").exists()


def test_two_stores_have_the_same_files(kept):
    one, two = (kept(store=name) for name in ("one", "two"))
    assert one != two
    assert nar(one, links=True) == nar(two, links=True)


def test_what_is_there_is_not_fetched_again_and_what_is_damaged_is(kept, tmp_path):
    folder = kept()
    assert kept(tmp_path / "gone") == folder
    (folder / "usr/include/a.h").write_bytes(b"hostile")
    with pytest.raises(ToolError, match="cannot fetch"):
        kept(tmp_path / "gone")
    assert (kept() / "usr/include/a.h").read_bytes() == b"header"


def test_compilers_of_a_store_that_is_only_read_are_used(kept, tmp_path, monkeypatch):
    folder = kept()
    monkeypatch.setattr("os.utime", raising(PermissionError(30, "Read-only file system")))
    assert kept(tmp_path / "gone") == folder


def test_a_store_that_cannot_be_written_is_told(kept, monkeypatch):
    full = OSError(30, "Read-only file system")
    monkeypatch.setattr("builder.store.locks.open_lock", raising(full))
    with pytest.raises(StoreError, match=r"cannot keep the pinned compilers for .* in .*: Read-only file system"):
        kept()


def test_a_pipe_among_the_files_is_damage(kept):
    folder = kept()
    os.mkfifo(folder / "usr/include/pipe")
    kept()
    assert not (folder / "usr/include/pipe").exists()


def test_another_package_than_the_pinned_one_is_refused_and_nothing_is_kept(kept, mirror, tmp_path):
    package(mirror / "pool/main/g/g++_12_amd64.deb", {"./usr/bin/hostile": b""})
    with pytest.raises(WrongHashError, match="is not the package that is pinned"):
        kept()
    assert list((tmp_path / "store/compilers").iterdir()) == []


def test_mirrors_are_asked_in_order(kept, mirror, tmp_path):
    assert kept(f"{tmp_path}/none {mirror}/").is_dir()


def test_another_users_compilers_are_not_used(kept):
    folder = kept()
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="anybody may write into it"):
        kept()


def test_a_system_without_pins_is_told(kept):
    with pytest.raises(NotHereError, match="no compiler for riscv64-linux") as raised:
        kept(system="riscv64-linux")
    assert HERE in raised.value.message


def test_a_build_gets_these_compilers_and_no_others(kept):
    folders = {HERE: kept()}
    found = compilers.variables(folders, {"CXX": "clang++", "CC": "clang", "PATH": "/usr/bin", "HOME": "/root"})
    own = f"{folders[HERE]}/usr/bin"
    assert found == {
        "CXX": f"{own}/{TRIPLE}-g++-12",
        "CC": f"{own}/{TRIPLE}-gcc-12",
        "PATH": f"{own}{os.pathsep}/usr/bin",
        "HOME": "/root",
    }
    cross = compilers.variables({"riscv64-linux": folders[HERE]}, {"CXX": "clang++"})
    assert "CXX" not in cross


def test_the_store_shows_and_removes_them(kept, tmp_path):
    folder, store = kept(), Store(tmp_path / "store")
    (item,) = (each for each in items(store) if each.kind == "compilers")
    assert item.path == folder
    with store.use(item.lock):
        assert collect(store, now=item.used, max_age=None, max_size=0) == ()
    assert [each.kind for each in collect(store, now=item.used, max_age=None, max_size=0)] == ["compilers"]
    assert not folder.exists()


@pytest.mark.parametrize("text", ["ftp://a", "debian", "file:///x"])
def test_what_is_no_mirror_is_refused(text):
    with pytest.raises(BuilderError, match="which is no mirror"):
        debian.mirrors({debian.MIRROR: text})


def test_on_another_distribution_a_mirror_has_to_be_named(monkeypatch):
    monkeypatch.setattr("builder.environment.debian.os_release", lambda: {"ID": "ubuntu"})
    with pytest.raises(NotHereError, match="no mirror of Debian is known") as raised:
        debian.mirrors({"PATH": os.defpath})
    assert debian.MIRROR in raised.value.help


def test_each_target_has_all_that_a_build_asks_for():
    """The table is whole: each system has its compilers, its C library and what they are loaded with."""
    table = compilers.TABLE.read_text()
    assert table == table.encode("ascii").decode()
    if HERE != "x86_64-linux":
        assert compilers.pinned() == {}
        return
    for target, found in compilers.pinned().items():
        names = {each.path.rpartition("/")[2].partition("_")[0] for each in found.packages}
        native = target == HERE
        cpu = {"x86_64-linux": "", "aarch64-linux": "-aarch64-linux-gnu"}[target]
        assert {f"g++-{found.version}{cpu}", f"gcc-{found.version}{cpu}", "libc6", "libisl23"} <= names
        assert ("libc6-dev" if native else "libc6-dev-arm64-cross") in names
        assert all(len(each.sha256) == 64 for each in found.packages)
        assert found.name.startswith(f"{target}-")
