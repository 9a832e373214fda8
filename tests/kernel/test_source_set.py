import json
import os
from pathlib import Path

import pytest

from builder import cli
from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel import load, source_set, tree
from builder.render import render
from tests.given.files import write

GENERAL = '[general]\nname = "my-relu"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cpu", "cuda"]\n'
CPU = '[kernel.cpu]\nbackend = "cpu"\ndepends = ["torch"]\n'
PACKAGE = "torch-ext/my_relu/__init__.py"


@pytest.fixture
def kernel(tmp_path):
    """Return a function that makes a kernel of a config and of files."""

    return lambda config, *listed, general=GENERAL: load(
        write(tmp_path / "kernel", {**dict.fromkeys((PACKAGE, *listed), ""), "build.toml": general + config})
    )


def names(kernel, **options):
    return list(source_set.source_set(kernel, **options).paths)


def problems(kernel):
    with pytest.raises(ConfigError) as raised:
        source_set.source_set(kernel)
    return [(problem.code, problem.message) for problem in raised.value.problems]


def test_the_source_set_is_sorted_and_can_be_read(kernel):
    made = kernel('[torch]\nsrc = ["z.cpp", "a.h"]\n' + CPU + 'src = ["cpu/b.cpp"]\n', "z.cpp", "a.h", "cpu/b.cpp")
    found = source_set.source_set(made)
    assert found.paths == ("a.h", "cpu/b.cpp", PACKAGE, "z.cpp")
    assert [found.read(path) for path in found.paths] == [(made.root / path).read_bytes() for path in found.paths]


def test_a_set_of_a_relative_directory_is_read_wherever_the_process_goes(kernel, monkeypatch, tmp_path):
    made = kernel("[torch]\n")
    monkeypatch.chdir(made.root.parent)
    found = source_set.source_set(load(Path("kernel")))
    monkeypatch.chdir(tmp_path.parent)
    assert found.read(PACKAGE) == (made.root / PACKAGE).read_bytes()
    assert found.root == made.root


def test_a_tree_that_is_handed_in_is_walked_once(kernel, monkeypatch):
    made = kernel('[torch]\nsrc = ["csrc/*.cpp"]\n' + CPU + 'src = ["csrc/**/*.cpp"]\n', "csrc/a.cpp", "csrc/b/c.cpp")
    known = tree.Tree.of(made.root)
    source_set.source_set(made, tree=known)
    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail(f"'{path}' is read again"))
    assert source_set.expand(made, ["csrc/**/*.cpp"], tree=known) == ("csrc/a.cpp", "csrc/b/c.cpp")
    assert source_set.source_set(made, tree=known).paths == ("csrc/a.cpp", "csrc/b/c.cpp", PACKAGE)


def test_the_config_and_what_nobody_names_are_left_out(kernel):
    assert names(kernel("[torch]\n", "README.md", "tests/test_a.py", "other.cpp")) == [PACKAGE]


def test_the_set_of_one_backend_has_its_components_alone(kernel):
    config = '[torch]\nsrc = ["b.cpp"]\n' + CPU + 'src = ["cpu.cpp"]\n'
    config += '[kernel.cuda]\nbackend = "cuda"\ndepends = []\nsrc = ["missing.cu"]\n'
    assert names(kernel(config, "b.cpp", "cpu.cpp"), backend=Backend.CPU) == ["b.cpp", "cpu.cpp", PACKAGE]


def test_a_path_is_normalized(kernel):
    assert names(kernel('[torch]\nsrc = ["./a/../b.cpp", "b.cpp"]\n', "b.cpp", "a/x")) == ["b.cpp", PACKAGE]


# Headers


def test_headers_of_include_directories_need_not_be_listed(kernel):
    config = f'[torch]\ninclude = ["include"]\n{CPU}src = []\ninclude = ["./inc/sub"]\n'
    made = kernel(config, "include/a.h", "include/deep/b.cuh", "include/c.cpp", "inc/sub/d.hpp", "inc/e.h")
    assert names(made) == ["inc/sub/d.hpp", "include/a.h", "include/deep/b.cuh", PACKAGE]


def test_headers_of_csrc_belong_to_the_set(kernel):
    assert names(kernel("[torch]\n", "csrc/a.h", "csrc/b/c.inl", "csrc/d.cu")) == ["csrc/a.h", "csrc/b/c.inl", PACKAGE]


def test_a_kernel_of_python_alone_has_no_headers(kernel):
    assert names(kernel("[torch-noarch]\n", "csrc/a.h")) == [PACKAGE]


def test_the_root_as_include_directory_leaves_out_what_was_built(kernel):
    made = kernel('[torch]\ninclude = ["."]\n', "a.h", "sub/b.h", "build/c.h", "dist/d.h", ".venv/e.h", "sub/build/f.h")
    assert names(made) == ["a.h", "sub/b.h", "sub/build/f.h", PACKAGE]


def test_an_include_directory_may_be_absent(kernel):
    assert names(kernel('[torch]\ninclude = ["nowhere"]\n')) == [PACKAGE]


# Globs


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("csrc/*.cu", ["csrc/a.cu", "csrc/b.cu"]),
        ("csrc/**/*.cu", ["csrc/a.cu", "csrc/b.cu", "csrc/x/c.cu", "csrc/x/y/d.cu"]),
        ("**/*.cu", ["csrc/a.cu", "csrc/b.cu", "csrc/x/c.cu", "csrc/x/y/d.cu"]),
        ("csrc/**", ["csrc/a.cu", "csrc/b.cu", "csrc/x/c.cu", "csrc/x/e.h", "csrc/x/y/d.cu"]),
        ("csrc/x/**/y/*.cu", ["csrc/x/y/d.cu"]),
        ("csrc/?.cu", ["csrc/a.cu", "csrc/b.cu"]),
        ("csrc/[!a].cu", ["csrc/b.cu"]),
        ("./csrc/*/[ce].*", ["csrc/x/c.cu", "csrc/x/e.h"]),
        ("**/**/**/d.cu", ["csrc/x/y/d.cu"]),
    ],
)
def test_a_glob_names_its_files_sorted(kernel, pattern, expected):
    listed = ("csrc/b.cu", "csrc/a.cu", "csrc/x/c.cu", "csrc/x/y/d.cu", "csrc/x/e.h", "csrc/.hidden.cu", ".git/x.cu")
    made = kernel(f'[torch]\n{CPU}src = ["{pattern}"]\n', *listed)
    assert source_set.expand(made, made.config.kernel["cpu"].src) == tuple(expected)


def test_expansion_keeps_the_order_of_entries_and_names_each_file_once(kernel):
    made = kernel('[torch]\nsrc = ["z.cpp", "*.cpp", "a.cpp"]\n', "a.cpp", "m.cpp", "z.cpp")
    assert source_set.expand(made, made.config.torch.src) == ("z.cpp", "a.cpp", "m.cpp")


def test_a_file_may_be_called_like_a_glob(kernel):
    assert names(kernel('[torch]\nsrc = ["a[1].cpp"]\n', "a[1].cpp", "a1.cpp")) == ["a[1].cpp", PACKAGE]


def test_a_glob_that_matches_nothing_is_an_error(kernel):
    made = kernel('[torch]\nsrc = ["csrc/*.cu"]\n', "csrc/a.cpp")
    assert problems(made) == [("B034", "no file matches 'csrc/*.cu'")]


def test_a_glob_in_schema_4_is_an_error(kernel):
    made = kernel('[torch]\nsrc = ["*.cpp"]\n', "a.cpp", general=GENERAL.replace("edition = 5\n", ""))
    assert [code for code, _ in problems(made)] == ["B034"]


@pytest.mark.parametrize("name", ["a\tb.cpp", "a\x7f.cpp", "\u202ea.cpp"], ids=ascii)
@pytest.mark.parametrize("listed", [True, False])
def test_a_source_whose_name_cannot_be_shown_is_refused_listed_or_found(tmp_path, capsys, name, listed):
    config = f"{GENERAL}[torch]\nsrc = [{json.dumps(name if listed else '*.cpp')}]\n"
    (tmp_path / "torch-ext/my_relu").mkdir(parents=True)
    for path, content in ((PACKAGE, ""), (name, ""), ("build.toml", config)):
        (tmp_path / path).write_text(content, encoding="utf-8")
    assert cli.run(["check", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert ("B023" if listed else "B030") in shown.out + shown.err


def test_a_glob_of_many_stars_is_matched_in_no_time(kernel):
    made = kernel(f'[torch]\nsrc = ["{"**/" * 40}*a*a*a*a*a*a*b"]\n', *(f"{'x/' * 30}{'a' * 40}{n}" for n in range(20)))
    assert problems(made)[0][0] == "B034"


# The Python package


def test_the_package_ships_the_extensions_of_the_config_alone(kernel):
    listed = ("a.py", "b.pyi", "c.json", "d.so", "e.pyc", "__pycache__/f.py", "g/h.py", "i.PY", ".hidden.py", "py")
    made = kernel('[torch]\npyext = ["py", "json", "so", "pyc"]\n', *(f"torch-ext/my_relu/{file}" for file in listed))
    assert names(made) == [
        PACKAGE,
        "torch-ext/my_relu/a.py",
        "torch-ext/my_relu/c.json",
        "torch-ext/my_relu/g/h.py",
    ]


def test_tvm_ffi_has_a_directory_of_its_own(kernel):
    made = kernel("[tvm-ffi]\nsrc = []\n", "tvm-ffi-ext/my_relu/__init__.py", "tvm-ffi-ext/my_relu/a.py")
    assert names(made) == ["tvm-ffi-ext/my_relu/__init__.py", "tvm-ffi-ext/my_relu/a.py"]


def test_a_missing_package_is_an_error_with_a_remedy(kernel):
    made = kernel("[torch]\n", "torch-ext/my-relu/__init__.py")
    (made.root / PACKAGE).unlink()
    with pytest.raises(ConfigError) as raised:
        source_set.source_set(made)
    (problem,) = raised.value.problems
    assert problem.code == "B032"
    assert problem.help.startswith("rename 'torch-ext/my-relu' to 'torch-ext/my_relu'")
    assert problem.span.line == 2


@pytest.mark.parametrize(
    ("named", "help_"),
    [
        ("my_rel", "did you mean 'my_relus'?"),
        ("python/my_rel", "create 'python/my_rel/__init__.py', or name another folder"),
    ],
)
def test_a_package_that_is_named_and_is_not_there_gets_the_one_that_is_near(kernel, named, help_):
    made = kernel(f'[torch]\n[wheel]\npackage = "{named}"\n', "my_relus/__init__.py")
    (made.root / PACKAGE).unlink()
    (made.root / PACKAGE).parent.rmdir()
    with pytest.raises(ConfigError) as raised:
        source_set.source_set(made)
    assert [problem.help for problem in raised.value.problems if problem.code == "B032"] == [help_]


def test_no_package_at_all_is_an_error(kernel):
    made = kernel("[torch]\n")
    (made.root / PACKAGE).unlink()
    (made.root / "torch-ext/my_relu").rmdir()
    (made.root / "torch-ext").rmdir()
    assert problems(made) == [("B032", "the Python package 'torch-ext/my_relu/__init__.py' does not exist")]


@pytest.mark.parametrize("outer", [True, False], ids=["beside an __init__", "without one outside"])
def test_a_package_nested_in_itself_is_an_error(kernel, outer):
    made = kernel("[torch]\n", "torch-ext/my_relu/my_relu/__init__.py")
    if not outer:
        (made.root / PACKAGE).unlink()
    assert problems(made) == [("B033", "the Python package is nested in itself: 'torch-ext/my_relu/my_relu'")]


# Files that are not there, or not here


def test_every_missing_file_is_reported_with_its_position(kernel):
    made = kernel('[torch]\nsrc = ["b.cpp", "bindin.cpp"]\n' + CPU + 'src = [\n  "cpu/c.cpp",\n]\n', "binding.cpp")
    with pytest.raises(ConfigError) as raised:
        source_set.source_set(made)
    found = [(problem.span.line, problem.span.column, problem.help) for problem in raised.value.problems]
    assert found == [
        (8, 8, None),
        (8, 17, "did you mean 'binding.cpp'?"),
        (13, 3, "there is no directory 'cpu' either"),
    ]


def test_a_directory_among_sources_is_an_error(kernel):
    assert problems(kernel('[torch]\nsrc = ["csrc"]\n', "csrc/a.cu")) == [("B030", "'csrc' is a directory")]


def test_a_fifo_among_sources_is_an_error(kernel):
    made = kernel('[torch]\nsrc = ["pipe.cpp"]\n')
    os.mkfifo(made.root / "pipe.cpp")
    assert problems(made) == [("B030", "'pipe.cpp' is not a regular file")]


def test_a_name_that_is_too_long_is_an_error(kernel):
    (problem,) = problems(kernel(f'[torch]\nsrc = ["{"a" * 5000}"]\n'))
    assert problem[0] == "B030"


@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize("link", ["a.cpp", "sub"], ids=["the file", "its directory"])
def test_a_source_that_leaves_the_project_through_a_link_is_an_error(kernel, tmp_path, link, absolute):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.cpp").write_text("")
    made = kernel('[torch]\nsrc = ["a.cpp"]\n' if link == "a.cpp" else '[torch]\nsrc = ["sub/a.cpp"]\n')
    target = tmp_path / "outside" / ("a.cpp" if link == "a.cpp" else "")
    (made.root / link).symlink_to(target if absolute else os.path.relpath(target, made.root))
    (problem,) = problems(made)
    assert problem[0] == "B031"


def test_a_link_within_the_project_is_followed(kernel):
    made = kernel('[torch]\nsrc = ["link.cpp"]\n', "real.cpp", "shared/c.py")
    (made.root / "link.cpp").symlink_to("real.cpp")
    (made.root / "torch-ext/my_relu/shared").symlink_to("../../shared")
    assert names(made) == ["link.cpp", PACKAGE, "torch-ext/my_relu/shared/c.py"]


def test_the_kernel_itself_may_be_a_link(kernel, tmp_path):
    made = kernel('[torch]\nsrc = ["a.cpp"]\n', "a.cpp")
    (tmp_path / "link").symlink_to(made.root)
    assert names(load(tmp_path / "link")) == ["a.cpp", PACKAGE]


def test_a_loop_of_links_ends(kernel):
    made = kernel('[torch]\ninclude = ["include"]\nsrc = ["loop.cpp"]\n', "include/a.h")
    (made.root / "include/again").symlink_to(".")
    (made.root / "include/up").symlink_to("..")
    (made.root / "loop.cpp").symlink_to("loop.cpp")
    assert [code for code, _ in problems(made)] == ["B030"]


def test_links_that_multiply_a_directory_are_refused(kernel, monkeypatch):
    monkeypatch.setattr(tree, "MOST_FILES", 1000)
    made = kernel('[torch]\ninclude = ["include"]\n', "include/a.h")
    for number in range(12):
        (made.root / f"include/d{number}").mkdir()
        for other in range(12):
            (made.root / f"include/d{number}/l{other}").symlink_to(f"../d{other}")
    assert problems(made) == [("B035", "too many files under 'include'")]


def test_a_package_file_that_leaves_the_project_is_an_error(kernel, tmp_path):
    (tmp_path / "secret.py").write_text("")
    made = kernel("[torch]\n")
    (made.root / "torch-ext/my_relu/a.py").symlink_to(tmp_path / "secret.py")
    assert [code for code, _ in problems(made)] == ["B031"]


def test_a_component_that_an_upgrade_doubled_is_reported_once(tmp_path):
    (tmp_path / "torch-ext/ab").mkdir(parents=True)
    (tmp_path / "torch-ext/ab/__init__.py").write_text("")
    text = '[general]\nname = "ab"\n[torch]\n[kernel.x]\nlanguage = "cuda-hipify"\nsrc = ["x.cu"]\ndepends = []\n'
    (tmp_path / "build.toml").write_text(text)
    made = load(tmp_path, license="MIT")
    assert len(made.config.kernel) == 2
    assert len(problems(made)) == 1


def test_a_component_with_the_sources_of_another_has_its_problems_at_its_own_key(kernel):
    text = (
        "[torch]\n"
        + CPU
        + 'src = ["gone/*.cpp"]\n[kernel.again]\nbackend = "cpu"\ndepends = []\nsrc = ["gone/*.cpp"]\n'
    )
    made = kernel(text)
    with pytest.raises(ConfigError) as raised:
        source_set.expand(made, made.config.kernel["again"].src)
    keys = [problem.key for problem in raised.value.problems]
    assert keys == [("kernel", "cpu", "src", 0), ("kernel", "again", "src", 0)]


def test_a_glob_beside_another_has_its_problem_at_its_own_key(kernel):
    made = kernel("[torch]\n" + CPU + 'src = ["a/*.cpp", "gone/*.cpp"]\n', "a/b.cpp")
    with pytest.raises(ConfigError) as raised:
        render(made, Backend.CPU)
    assert [problem.key for problem in raised.value.problems] == [("kernel", "cpu", "src", 1)]


def test_an_entry_that_names_no_file_is_refused_when_expanded(kernel):
    made = kernel("[torch]\n" + CPU + 'src = ["gone.cpp"]\n')
    with pytest.raises(ConfigError, match=r"'gone\.cpp' does not exist"):
        source_set.expand(made, made.config.kernel["cpu"].src)
