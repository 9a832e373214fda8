"""Errors and warnings of compilers, as a user reads them: with their own paths, and without lines of other tools."""

from pathlib import Path

import pytest

from builder.make import compiler_output, workplace
from builder.make.compiler_output import KnownPaths
from builder.run import Completed

NINJA = """*** Building project with Ninja...
[1/3] Building CXX object CMakeFiles/portable.dir/a.cpp.o
[2/3] Building CXX object CMakeFiles/_k.dir/csrc/k.cpp.o
FAILED: [code=1] CMakeFiles/_k.dir/csrc/k.cpp.o
/usr/bin/c++ -I/tmp/builder/src/csrc -c /tmp/builder/src/csrc/k.cpp
{said}
[3/3] Building CXX object CMakeFiles/portable.dir/b.cpp.o
ninja: build stopped: subcommand failed.

*** CMake build failed
"""
TYPO = """/tmp/builder/src/csrc/k.cpp: In function 'void f()':
/tmp/builder/src/csrc/k.cpp:18:24: error: 'faktor' was not declared in this scope
   18 |   x = faktor;
      |       ^~~~~~"""
TEMPLATE = """In file included from /usr/include/c++/12/algorithm:61,
                 from /tmp/builder/src/csrc/k.cpp:2:
/usr/include/c++/12/bits/stl_algo.h: In instantiation of 'void std::__sort(I, I) [with I = Odd]':
/usr/include/c++/12/bits/stl_algo.h:4820:18:   required from 'void std::sort(I, I) [with I = Odd]'
/tmp/builder/src/csrc/k.cpp:12:12:   required from here
   12 |   std::sort(odd.begin(), odd.end());
/usr/include/c++/12/bits/stl_algo.h:1938:50: error: no match for 'operator-'
 1938 |             std::__lg(last - first)
In file included from /usr/include/c++/12/vector:60,
                 from /tmp/builder/src/csrc/k.cpp:1:
/usr/include/c++/12/bits/stl_iterator.h:621:5: note: candidate: 'operator-'"""
NVCC = """/usr/local/cuda/include/tile.h(4): error: static assertion failed with "T is too small"
  struct Tile { static_assert(sizeof(T) > 4, "T is too small"); };
                ^
          detected during:
            instantiation of class "Tile<T> [with T=float]" at line 9
            instantiation of "T load(const T *)" at line 5 of /tmp/builder/src/csrc/k.cu

1 error detected in the compilation of "/tmp/builder/src/csrc/k.cu"."""
CLANG = """/opt/rocm/include/tile.h:4:3: error: static assertion failed
/tmp/builder/src/csrc/k.hip:5:7: note: in instantiation of function template 'load<float>' requested here"""
LINKER = """/usr/bin/ld: CMakeFiles/_k.dir/csrc/k.cpp.o: in function `f':
k.cpp:(.text+0x5): undefined reference to `g'
collect2: error: ld returned 1 exit status"""
WARNINGS = """/tmp/builder/src/csrc/k.cu:2:2: warning: #warning "slow on old GPUs" [-Wcpp]
    2 | #warning "slow on old GPUs"
      |  ^~~~~~~
/tmp/builder/src/csrc/k.cu:2:2: warning: #warning "slow on old GPUs" [-Wcpp]
    2 | #warning "slow on old GPUs"
      |  ^~~~~~~
/tmp/builder/src/csrc/k.cu(9): warning #177-D: variable "unused" was declared but never referenced
    int unused;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"
"""


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Return the names of the folders of a build of the kernel in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "csrc").mkdir()
    for name in ("k.cpp", "k.cu", "k.hip"):
        (tmp_path / "csrc" / name).touch()
    return KnownPaths(sources=Path("/tmp/builder/src"), root=Path(), others={"/tmp/builder/env": "/store/env"})


def errors(said, paths):
    return list(compiler_output.errors(NINJA.format(said=said).splitlines(), paths))


def test_an_error_names_the_users_file_and_no_line_of_ninja_is_around_it(paths):
    assert errors(TYPO, paths) == [
        "csrc/k.cpp:18:24: error: 'faktor' was not declared in this scope",
        "   18 |   x = faktor;",
        "      |       ^~~~~~",
    ]


def test_the_users_line_comes_before_an_error_in_a_template_of_others(paths):
    assert errors(TEMPLATE, paths) == [
        "csrc/k.cpp:12:12:   required from here",
        "   12 |   std::sort(odd.begin(), odd.end());",
        "/usr/include/c++/12/bits/stl_algo.h:1938:50: error: no match for 'operator-'",
        " 1938 |             std::__lg(last - first)",
        "/usr/include/c++/12/bits/stl_iterator.h:621:5: note: candidate: 'operator-'",
    ]


def test_the_users_line_comes_first_with_nvcc_and_clang_too(paths):
    assert errors(NVCC, paths)[:2] == [
        "csrc/k.cu(5): required from here",
        '/usr/local/cuda/include/tile.h(4): error: static assertion failed with "T is too small"',
    ]
    assert errors(CLANG, paths) == [
        "csrc/k.hip:5:7: note: in instantiation of function template 'load<float>' requested here",
        "/opt/rocm/include/tile.h:4:3: error: static assertion failed",
    ]


def test_an_error_of_the_linker_says_which_function_is_missing(paths):
    assert errors(LINKER, paths) == LINKER.splitlines()


def test_an_error_of_cmake_is_shown_without_its_call_stack(paths):
    said = "CMake Error at cmake/find.cmake:3 (message):\n  no such library\n\n    help: install it"
    output = f"-- Found x\n{said}\nCall Stack (most recent call first):\n  CMakeLists.txt:4 (f)\n\n\n"
    output += "-- Configuring incomplete, errors occurred!\n\n*** CMake configuration failed"
    assert list(compiler_output.errors(output.splitlines(), paths)) == said.splitlines()


def test_many_errors_are_cut_and_counted(paths):
    shown = errors("\n".join([TYPO] * 12), paths)
    assert len(shown) == 21
    assert shown[-1] == "… 16 more lines; 12 errors in all"


def test_output_without_an_error_is_shown_as_far_as_it_is_the_last(paths):
    lines = [f"line {number}" for number in range(30)]
    assert compiler_output.errors(lines, paths) == tuple(lines[-20:])


def test_a_file_that_the_user_has_not_is_named_in_the_project_and_another_folder_by_its_own_path(paths):
    assert paths.shown("/tmp/builder/src/ops.cpp:1:2: error: x") == "ops.cpp:1:2: error: x"
    assert paths.shown("/tmp/builder/env/lib/x.h:1:2: error: x") == "/store/env/lib/x.h:1:2: error: x"


def test_a_kernel_elsewhere_is_named_as_the_user_named_it(tmp_path, paths):
    there = KnownPaths(sources=paths.sources, root=tmp_path)
    assert there.shown('in "/tmp/builder/src/csrc/k.cu".') == f'in "{tmp_path}/csrc/k.cu".'


def test_each_warning_is_found_once(paths):
    lines = f"[1/2] Building CUDA object k.cu.o\n{WARNINGS}\n[2/2] Linking CXX shared module k.so".splitlines()
    assert compiler_output.warnings(lines, paths) == (
        (
            'csrc/k.cu:2:2: warning: #warning "slow on old GPUs" [-Wcpp]\n'
            '    2 | #warning "slow on old GPUs"\n'
            "      |  ^~~~~~~"
        ),
        'csrc/k.cu(9): warning #177-D: variable "unused" was declared but never referenced\n    int unused;\n        ^',
    )


def test_no_warning_of_cmake_and_no_name_of_a_file_counts(paths):
    lines = ["CMake Warning (unused-cli):", "  no", "-- warning: x", "[1/1] Building warning.cpp.o"]
    assert compiler_output.warnings(lines, paths) == ()


def test_a_failed_build_shows_the_errors_that_way(tmp_path, paths):
    done = Completed(returncode=1, output=NINJA.format(said=TYPO), peak=0)
    error = workplace.compile_error("cpu", done, tmp_path / "log", kills=0, paths=paths)
    assert error.message.splitlines()[:2] == ["cpu: the build failed", errors(TYPO, paths)[0]]
