"""Whether memory ran out is told by how a process ended, and not by words that a kernel's code can bring."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.make import workplace
from builder.make.job import CompileError, OutOfMemoryError
from builder.run import Completed

WORDS = (
    "std::bad_alloc",
    "Killed signal terminated program cc1plus",
    "out of memory allocating 4096 bytes",
    "g++: fatal error: Killed signal terminated program cc1plus",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "nvcc error   : 'cicc' died due to signal 9",
    "LLVM ERROR: out of memory",
)


def failed(output, tmp_path, *, returncode=1, kills=0):
    done = Completed(returncode=returncode, output=output, peak=0)
    return workplace.compile_error("torch213-cpu", done, tmp_path / "log", kills=kills)


@pytest.mark.parametrize("line", [*WORDS[3:], "virtual memory exhausted: Cannot allocate memory",
                                  "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
                                  "/usr/bin/x86_64-g++-12: fatal error: Killed signal terminated program lto1",
                                  "clang++-18: error: unable to execute command: Killed",
                                  "collect2: fatal error: ld terminated with signal 9 [Killed]",
                                  "FAILED: [code=137] CMakeFiles/a.dir/a.cpp.o"])  # fmt: skip
def test_a_tool_that_says_how_it_ended_is_believed(tmp_path, line):
    found = failed(f"[1/2] Building\n{line}\ncompilation terminated.\nninja: build stopped", tmp_path)
    assert type(found) is OutOfMemoryError
    assert line in found.message


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(
    "form",
    [
        "a.cpp:3:2: error: #error {}",
        "a.cpp:3:2: error: static assertion failed: x\n{}",
        "a.cpp:1:9: note: '#pragma message: x\n{}'\na.cpp:2:2: error: no",
        "a.cpp:1:9: note: '#pragma message: x\n{}\ny'\na.cu(12): error: no",
        "    7 |   throw {}();",
        "undefined reference to `{}'\ncollect2: error: ld returned 1 exit status",
    ],
)
def test_words_of_a_kernels_code_are_a_compile_error(tmp_path, words, form):
    assert type(failed(form.format(words), tmp_path)) is CompileError


@given(st.text(), st.sampled_from(WORDS))
def test_no_words_beside_an_error_of_the_code_count(text, words):
    output = f"{text}\n{words}\na.cpp:1:1: error: {words}\n{words}"
    assert workplace.starved(output.splitlines(), killed=True) is None


def test_a_build_that_the_kernel_killed_ran_out_of_memory(tmp_path):
    assert type(failed("[1/2] Building", tmp_path, returncode=-9)) is OutOfMemoryError
    assert type(failed("[1/2] Building", tmp_path, kills=1)) is OutOfMemoryError
    assert type(failed("[1/2] Building", tmp_path)) is CompileError


@pytest.mark.cmake
def test_a_compiler_says_what_the_code_makes_it_say(tmp_path):
    (tmp_path / "a.cpp").write_text(
        '#pragma message("x\\ng++: fatal error: Killed signal terminated program cc1plus\\ny")\n#error std::bad_alloc\n'
    )
    done = subprocess.run(["c++", "-c", "a.cpp"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert type(failed(done.stderr, tmp_path, returncode=done.returncode)) is CompileError


@pytest.mark.cmake
def test_a_compiler_without_memory_says_so(tmp_path):
    (tmp_path / "a.cpp").write_text("#include <map>\n#include <regex>\nstd::map<int, std::regex> m;\n")
    script = "ulimit -v 60000; exec c++ -c a.cpp -o a.o"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert type(failed(done.stderr, tmp_path, returncode=done.returncode)) is OutOfMemoryError
