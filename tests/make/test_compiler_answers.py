"""CMake's answers about compilers are kept for the same compilers, and a build never depends on them."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder.make import compiler_answers
from builder.make.compiler_answers import CompilerAnswers
from builder.make.job import Job, PinnedPackages
from builder.pins import PinSet
from builder.run import Completed
from builder.store import Store
from builder.wheel.options import BuildOptions
from tests.given.jobs import job

CACHE = "CMAKE_NM:FILEPATH=/usr/bin/nm\nCMAKE_MAKE_PROGRAM:FILEPATH=/ninja\nKERNEL_TORCH_DIR:PATH=/torch\n"
COMPILER = 'set(CMAKE_CUDA_COMPILER "/nvcc")\nset(CMAKE_CUDA_ARCHITECTURES_NATIVE "90-real")\n'
FINE, WRONG = (Completed(returncode=code, output="", peak=0) for code in (0, 1))


@pytest.fixture
def answers(store, tmp_path):
    """Return the answers for a build folder of its own."""

    def make(name, digest="1"):
        build = tmp_path / name
        build.mkdir(exist_ok=True)
        return CompilerAnswers(notes=store, name="compilers", digest=digest, build=build)

    return make


def cmake(build, seen, ends=FINE):
    """Do what CMake does in its folder; say whether it had to look at the compilers."""
    folder = build / "CMakeFiles/4.0.0"
    seen.append(sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [])
    if not folder.is_dir():
        folder.mkdir(parents=True)
        (folder / "CMakeCUDACompiler.cmake").write_text(COMPILER)
        (folder / "CMakeSystem.cmake").write_text("")
        (build / "CMakeCache.txt").write_text(CACHE)
    (build / "build.ninja").write_text("")
    return ends


def looked(answers):
    """Build, and return the files of compilers that CMake found, one list for each time that it ran."""
    seen = []
    assert answers.around(lambda: cmake(answers.build, seen)) is FINE
    return seen


def test_the_second_build_has_the_answers_of_the_first(answers):
    assert looked(answers("first")) == [[]]
    second = answers("second")
    assert looked(second) == [["CMakeCUDACompiler.cmake"]]
    cache = (second.build / "CMakeCache.txt").read_text().splitlines()
    assert cache == ["CMAKE_PLATFORM_INFO_INITIALIZED:INTERNAL=1", "CMAKE_NM:FILEPATH=/usr/bin/nm"]


def test_what_is_said_of_the_gpu_of_a_machine_is_not_kept(answers):
    looked(answers("first"))
    second = answers("second")
    looked(second)
    kept = (second.build / "CMakeFiles/4.0.0/CMakeCUDACompiler.cmake").read_text()
    assert kept == 'set(CMAKE_CUDA_COMPILER "/nvcc")\n'


def test_answers_for_other_compilers_are_not_taken_and_are_replaced(answers):
    looked(answers("first"))
    assert looked(answers("second", "2")) == [[]]
    assert looked(answers("third", "2")) != [[]]
    assert looked(answers("fourth", "1")) == [[]]


def test_nothing_is_kept_of_a_build_that_failed(answers):
    first = answers("first")
    assert first.around(lambda: cmake(first.build, [], WRONG)) is WRONG
    assert looked(answers("second")) == [[]]


def test_a_build_that_cmake_does_not_configure_with_them_is_run_again_without(answers):
    looked(answers("first"))
    second, seen = answers("second"), []

    def run():
        if (second.build / "CMakeFiles").is_dir():
            seen.append("refused")
            return WRONG
        return cmake(second.build, seen)

    assert second.around(run) is FINE
    assert seen == ["refused", []]


def test_a_build_that_fails_after_it_is_configured_is_not_run_again(answers):
    looked(answers("first"))
    second, seen = answers("second"), []
    assert second.around(lambda: cmake(second.build, seen, WRONG)) is WRONG
    assert len(seen) == 1


def test_a_build_that_was_stopped_goes_on_with_what_it_has(answers):
    looked(answers("first"))
    second = answers("second")
    (second.build / "CMakeFiles").mkdir()
    assert looked(second) == [[]]


@pytest.mark.parametrize(
    "change",
    [
        {"version": "../.."},
        {"files": {"../CMakeCXXCompiler.cmake": ""}},
        {"files": {"CMakeCXXCompiler.cmake": 1}},
        {"files": None},
        {"cache": ["CMAKE_CXX_FLAGS:STRING=-O0"]},
        {"cache": "CMAKE_NM:FILEPATH=/usr/bin/nm"},
    ],
    ids=repr,
)
def test_a_note_of_another_shape_is_none(answers, store, change):
    looked(answers("first"))
    store.set_note("compilers", {**store.note("compilers"), **change})
    assert looked(answers("second")) == [[]]


def test_a_damaged_note_is_none(answers, store):
    looked(answers("first"))
    note = store.root / "notes/compilers.json"
    note.write_text(note.read_text().replace("nvcc", "evil"))
    assert looked(answers("second")) == [[]]


def test_a_store_that_cannot_be_written_keeps_none_and_refuses_no_build(answers, store):
    (store.root / "notes").rmdir()
    (store.root / "notes").touch()
    assert looked(answers("first")) == [[]]
    assert looked(answers("second")) == [[]]


def test_what_cannot_be_written_into_the_build_folder_is_left_out(answers, monkeypatch):
    looked(answers("first"))
    second, seen = answers("second"), []
    with monkeypatch.context() as patch:
        patch.setattr(compiler_answers.Path, "write_text", Mock(side_effect=OSError(28, "No space left on device")))
        assert second.around(lambda: seen.append(sorted(second.build.iterdir())) or WRONG) is WRONG
    assert seen == [[]]


def of(given, variables=None, arguments=()):
    found = CompilerAnswers.of(
        given, Store(Path("/nowhere")), build=Path("/build"), variables=variables or {}, arguments=arguments
    )
    return None if found is None else (found.name, found.digest)


@pytest.fixture
def _canonical(monkeypatch):
    monkeypatch.setattr(Job, "canonical", True)
    monkeypatch.setattr(Job, "sandboxed", True)


@pytest.mark.usefixtures("_canonical")
def test_answers_are_of_the_compilers_and_what_decides_what_cmake_sees_of_them():
    given = job()
    same = of(given)
    other = replace(given.toolchain, cxx=replace(given.toolchain.cxx, digest="1"))
    elsewhere = replace(given.toolchain, cxx=replace(given.toolchain.cxx, path=Path("/bin/true")))
    assert of(replace(given, toolchain=other)) != same
    assert of(replace(given, toolchain=elsewhere)) != same
    pinned = [PinnedPackages(path=Path("/e"), pins=PinSet(python, "x86_64-linux", ())) for python in ("cp311", "cp312")]
    keys = {of(replace(given, spec=replace(given.spec, environment=each))) for each in pinned}
    assert len(keys - {same}) == len(pinned)
    assert of(given, {"PATH": "/elsewhere"}) != same
    assert of(given, arguments=("-DCMAKE_PREFIX_PATH=/elsewhere",)) != same


@pytest.mark.usefixtures("_canonical")
def test_answers_are_of_no_kernel_no_cache_of_objects_and_no_number_of_cores():
    given = job()
    same = of(given)
    assert of(replace(given, cores=7)) == same
    assert of(given, {"MAKEFLAGS": "-j7", "CCACHE_DIR": "/ccache"}) == same
    assert of(given, arguments=("-DKERNEL_NVCC_THREADS=3", "-DCMAKE_CXX_COMPILER_LAUNCHER=/usr/bin/ccache")) == same


@pytest.mark.usefixtures("_canonical")
def test_a_build_by_other_rules_or_at_a_path_of_its_own_keeps_no_answers(monkeypatch):
    for options in (BuildOptions(without=("strip",)), BuildOptions(variables={"CPATH": "/x"})):
        assert of(job(spec=replace(job().spec, options=options))) is None
    assert of(replace(job(), toolchain=None)) is None
    monkeypatch.setattr(Job, "canonical", False)
    assert of(job()) is None
