"""A library built here runs where glibc, libgcc and libstdc++ are as old as manylinux_2_28 says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.binary.extension import Extension
from builder.binary.policies import lowest_policy
from builder.wheel.archive import Bytes, pack
from tests import needs
from tests.given.audits import by_auditwheel
from tests.given.files import once, write
from tests.given.processes import tool

from . import rendered

pytestmark = [pytest.mark.cmake, pytest.mark.slow]

PROJECT = Path(__file__).parent.parent / "data/portable"
CMAKE = rendered.ROOT / "cmake"
OLD = "BUILDER_TEST_OLD_ROOT"
NEW = "BUILDER_TEST_NEW_ROOT"
CALL = "import ctypes, sys; print(*(ctypes.CDLL(path).everything() for path in sys.argv[1:]))"
START_THREAD = "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"
"""Of which mold forgets the version."""
CROSS = (
    "-DCMAKE_SYSTEM_NAME=Linux",
    "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
    "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
)


def configure(build, *definitions, source=PROJECT / "everything.cpp"):
    done = rendered.configure(
        PROJECT,
        build,
        f"-DKERNEL_CMAKE_DIR={CMAKE}",
        f"-DSOURCE={source}",
        "-DCMAKE_BUILD_TYPE=Release",
        *definitions,
    )
    assert done.returncode == 0, done.output
    return done


def compiled(build):
    return rendered.run([tool("cmake"), "--build", build])


def library(build, *definitions, source=PROJECT / "everything.cpp", standard=20):
    configure(build, f"-DCMAKE_CXX_STANDARD={standard}", *definitions, source=source)
    done = compiled(build)
    assert done.returncode == 0, done.output
    return build / "everything.so"


def returned(*libraries):
    done = subprocess.run([sys.executable, "-c", CALL, *libraries], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).split("\n")[-2:-1] if done.returncode else done.stdout.splitlines()[-1].split()


def policy(path):
    """Return the release of glibc that the policy of a library names: portable is 2.28 or less."""
    extension = Extension.read(path.name, path.read_bytes())
    return tuple(map(int, lowest_policy((extension,), extension.machine).name.split("_")[1:]))


def policy_by_auditwheel(path, folder):
    wheel = folder / "everything-1.0-py3-none-linux_x86_64.whl"
    dist_info = "everything-1.0.dist-info"
    members = {
        "everything/everything.so": Bytes(path.read_bytes()),
        f"{dist_info}/WHEEL": Bytes(b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"),
        f"{dist_info}/METADATA": Bytes(b"Metadata-Version: 2.1\nName: everything\nVersion: 1.0\n"),
    }
    wheel.write_bytes(pack(members, dist_info=dist_info))
    return by_auditwheel({"": wheel})[""]


def unversioned(path):
    """Return what a library calls without saying of which version, but for what may be absent."""
    done = rendered.run(["nm", "-D", "--undefined-only", path])
    return [line.split()[1] for line in done.output.splitlines() if "@" not in line and line.split()[0] == "U"]


@pytest.fixture(scope="session")
def everything(shared):
    folder = shared / "portable"
    with once(folder) as empty:
        if empty:
            library(folder / "build")
    return folder / "build/everything.so"


def test_all_that_newer_systems_changed_is_linked_as_it_was(everything, tmp_path):
    assert policy(everything) <= (2, 28)
    assert int(policy_by_auditwheel(everything, tmp_path).split("_")[2]) <= 28
    assert unversioned(everything) == []


def test_what_is_linked_so_works(everything):
    assert returned(everything) == ["0"]


def test_two_such_libraries_live_in_one_process(everything, tmp_path):
    second = shutil.copy(everything, tmp_path / "second.so")
    assert returned(everything, second) == ["0", "0"]


def test_nothing_that_was_linked_in_is_seen_from_outside(everything):
    exported = rendered.run(["nm", "-D", "--defined-only", everything]).output
    names = {line.split()[-1] for line in exported.splitlines()}
    assert "everything" in names
    hidden = {"stat", "__libc_single_threaded", "_ZSt10from_charsPKcS0_RdSt12chars_format"}
    assert not names & (hidden | {"_ZNSt10filesystem6statusERKNS_7__cxx114pathE"})


def test_what_nothing_calls_is_not_linked(tmp_path):
    code = 'extern "C" __attribute__((visibility("default"))) int everything() { return 0; }\n'
    small = library(tmp_path / "build", source=write(tmp_path, {"one.cpp": code}) / "one.cpp")
    extension = Extension.read(small.name, small.read_bytes())
    assert set(extension.needed) <= {"libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"}
    assert small.stat().st_size < 20_000


def test_a_library_that_starts_threads_has_libpthread_loaded(tmp_path):
    code = '#include <thread>\nextern "C" __attribute__((visibility("default"))) int everything() '
    code += "{ int x = 1; std::thread t([&] { x = 0; }); t.join(); return x; }\n"
    threads = library(tmp_path / "build", source=write(tmp_path, {"one.cpp": code}) / "one.cpp")
    assert "libpthread.so.0" in Extension.read(threads.name, threads.read_bytes()).needed
    assert returned(threads) == ["0"]


NEWER = """
extern "C" unsigned arc4random();
extern "C" __attribute__((visibility("default"))) int everything() { return arc4random() == 1; }
"""


def test_what_has_no_older_version_is_named_with_the_source_that_calls_it(tmp_path):
    if "arc4random" not in rendered.run(["sh", "-c", "nm -D $(g++ -print-file-name=libc.so.6)"]).output:
        pytest.skip("the C library of this machine is older than arc4random: glibc 2.36 is needed")
    configure(tmp_path / "build", source=write(tmp_path, {"one.cpp": NEWER}) / "one.cpp")
    done = compiled(tmp_path / "build")
    assert done.returncode != 0
    assert "arc4random (GLIBC_2.36) is newer than manylinux_2_28" in done.output
    assert "one.cpp calls it" in done.output
    said = rendered.words(done.output)
    assert "help: write it another way, or accept a newer policy: builder build --manylinux manylinux_2_36, or" in said
    newer = library(tmp_path / "build", "-DKERNEL_MANYLINUX=manylinux_2_36", source=tmp_path / "one.cpp")
    assert policy(newer) == (2, 36)


VECTORS = """
#include <cmath>
extern "C" __attribute__((visibility("default"))) int everything(float *data) {
  for (int i = 0; i < 1024; ++i) data[i] = std::erf(data[i]);
  return 0;
}
"""


def test_a_function_that_the_compiler_makes_of_a_loop_is_known_by_its_name(tmp_path):
    found = rendered.run(["sh", "-c", "nm -D $(g++ -print-file-name=libmvec.so.1)"])
    if "_ZGVbN4v_erff@" not in found.output:
        pytest.skip("the C library of this machine has no erff for vectors: glibc 2.35 on x86_64 is needed")
    source = write(tmp_path, {"one.cpp": VECTORS}) / "one.cpp"
    configure(tmp_path / "build", "-DCMAKE_CXX_FLAGS_RELEASE=-Ofast", source=source)
    said = rendered.words(compiled(tmp_path / "build").output)
    assert "_ZGVbN4v_erff (GLIBC_2.35) is newer than manylinux_2_28" in said
    assert "help: compile without -Ofast and -ffast-math, which call libmvec, or accept a newer policy" in said
    assert "--manylinux manylinux_2_35" in said


def test_a_policy_that_is_none_is_refused(tmp_path):
    configure(tmp_path / "build", "-DKERNEL_MANYLINUX=2.28", source=write(tmp_path, {"one.cpp": NEWER}) / "one.cpp")
    assert "'2.28' is not a manylinux policy" in compiled(tmp_path / "build").output


@pytest.mark.parametrize("standard", [17, 23])
def test_every_standard_is_linked_so(tmp_path, standard):
    path = library(tmp_path / "build", standard=standard)
    assert policy(path) <= (2, 28)
    assert returned(path) == ["0"]


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """A folder of builds that differ in how they link alone."""
    return tmp_path_factory.mktemp("linkers")


@pytest.mark.parametrize("linker", ["gold", "lld", "mold"])
def test_every_linker_links_so(compiled_once, linker):
    needs.program(f"ld.{linker}")
    path = library(compiled_once, f"-DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld={linker}")
    assert policy(path) <= (2, 28)
    assert set(unversioned(path)) <= {START_THREAD}
    assert returned(path) == ["0"]


def test_clang_links_so(tmp_path):
    path = library(tmp_path / "build", f"-DCMAKE_CXX_COMPILER={needs.program('clang++')}", standard=17)
    assert policy(path) <= (2, 28)
    assert returned(path) == ["0"]


@pytest.fixture(scope="module")
def aarch64(tmp_path_factory):
    needs.program("aarch64-linux-gnu-g++")
    return library(tmp_path_factory.mktemp("aarch64"), *CROSS)


def test_aarch64_is_linked_so(aarch64):
    assert Extension.read(aarch64.name, aarch64.read_bytes()).machine == "aarch64"
    assert policy(aarch64) <= (2, 28)
    assert unversioned(aarch64) == []


MAIN = """
#include <dlfcn.h>
int main(int count, char **names) {
  void *library = dlopen(names[count - 1], RTLD_NOW);
  int (*everything)(void) = library ? (int (*)(void))dlsym(library, "everything") : 0;
  return everything ? everything() : 1;
}
"""


def test_a_library_for_aarch64_works(aarch64, tmp_path):
    needs.program("qemu-aarch64-static")
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    rendered.run(["aarch64-linux-gnu-gcc", tmp_path / "main.c", "-o", tmp_path / "main", "-ldl"])
    done = rendered.run(["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", tmp_path / "main", aarch64])
    assert done.returncode == 0, done.output


def root(variable, what):
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no root: {what}")
    if os.geteuid() != 0:
        pytest.skip("only root may enter a root: run this test as root")
    return Path(named)


def inside(folder, *command):
    mounted = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return rendered.run(["unshare", "--mount", "sh", "-c", mounted, folder, *command])


def test_the_library_runs_in_an_older_root(everything, tmp_path):
    older = root(OLD, "debootstrap --variant=minbase --include=python3,libstdc++6 bullseye ROOT")
    place = older / "tmp" / tmp_path.name
    place.mkdir()
    try:
        shutil.copy(everything, place / "everything.so")
        done = inside(older, "python3", "-c", CALL, f"/tmp/{tmp_path.name}/everything.so")
    finally:
        shutil.rmtree(place)
    assert done.output.splitlines()[-1] == "0", done.output


@pytest.mark.parametrize("standard", [17, 20, 23])
def test_a_newer_compiler_links_so_too(tmp_path, standard):
    newer = root(NEW, "debootstrap --variant=minbase --include=g++,cmake,ninja-build,python3 sid ROOT")
    place = newer / "tmp" / tmp_path.name
    place.mkdir()
    try:
        shutil.copytree(CMAKE, place / "cmake")
        shutil.copytree(PROJECT, place / "project")
        here = f"/tmp/{tmp_path.name}"
        settings = [f"-DKERNEL_CMAKE_DIR={here}/cmake", f"-DSOURCE={here}/project/everything.cpp"]
        settings += [f"-DCMAKE_CXX_STANDARD={standard}", "-DCMAKE_BUILD_TYPE=Release", "-GNinja"]
        done = inside(newer, "cmake", "-S", f"{here}/project", "-B", f"{here}/build", *settings)
        assert done.returncode == 0, done.output
        done = inside(newer, "cmake", "--build", f"{here}/build")
        assert done.returncode == 0, done.output
        path = Path(shutil.copy(place / "build/everything.so", tmp_path))
    finally:
        shutil.rmtree(place)
    assert policy(path) <= (2, 28)
    assert unversioned(path) == []
    assert returned(path) == ["0"]
