"""`exclude` takes files out of `src`, and names what it takes."""

import pytest

from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel import load
from builder.kernel.source_set import source_set
from builder.render import render
from tests.given.files import write
from tests.render.small import kernel

FILES = {"csrc/a.cpp": "", "csrc/a_test.cpp": "", "csrc/deep/b_test.cpp": "", "csrc/gpu.cu": ""}
SRC = 'src = ["one.cpp"]'


def loaded(root, lines):
    kernel(root, files=FILES)
    text = (root / "build.toml").read_text(encoding="utf-8").replace(SRC, lines)
    return load(write(root, {"build.toml": text}))


def sources(kernel_):
    lines = render(kernel_, Backend.CPU)["CMakeLists.txt"].splitlines()
    return [line.strip() for line in lines if line.strip().endswith((".cpp", ".cu")) and "torch-ext" not in line]


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ("csrc/*_test.cpp", ["csrc/a.cpp", "csrc/deep/b_test.cpp"]),
        ("csrc/**/*_test.cpp", ["csrc/a.cpp"]),
        ("./csrc//a_test.cpp", ["csrc/a.cpp", "csrc/deep/b_test.cpp"]),
        ("csrc/[!a]*/*", ["csrc/a.cpp", "csrc/a_test.cpp"]),
    ],
)
def test_what_is_excluded_is_neither_compiled_nor_copied(tmp_path, exclude, left):
    found = loaded(tmp_path, f'src = ["csrc/**/*.cpp"]\nexclude = ["{exclude}"]')
    assert sources(found) == left
    assert {path for path in source_set(found).paths if path.startswith("csrc")} == set(left)
    assert set(FILES) & set(render(found, Backend.CPU).files) == set(left)


def test_a_source_of_another_backend_can_be_excluded(tmp_path):
    assert sources(loaded(tmp_path, 'src = ["csrc/*"]\nexclude = ["**/*.cu", "csrc/a_test.cpp"]')) == ["csrc/a.cpp"]


def test_what_is_excluded_without_globs_renders_as_if_it_were_not_listed(tmp_path):
    with_ = loaded(tmp_path / "a", 'src = ["csrc/a.cpp", "csrc/a_test.cpp"]\nexclude = ["csrc/a_test.cpp"]')
    plain = loaded(tmp_path / "b", 'src = ["csrc/a.cpp"]')
    assert render(with_, Backend.CPU).files == render(plain, Backend.CPU).files


@pytest.mark.parametrize("exclude", ["csrc/*_tset.cpp", "one.cpp", "csrc", "csrc/[a.cpp", "*", "NAME:x.cpp", "-rf"])
def test_an_entry_that_names_no_source_is_refused_where_it_stands(tmp_path, exclude):
    with pytest.raises(ConfigError) as caught:
        source_set(loaded(tmp_path, f'src = ["csrc/*.cpp"]\nexclude = ["csrc/a.cpp", "{exclude}"]'))
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("B041", ("kernel", "one", "exclude", 1))
    assert problem.span is not None
    assert problem.help == "the sources are 'csrc/a.cpp', 'csrc/a_test.cpp'"


def test_an_exclude_that_leaves_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no source is left") as caught:
        source_set(loaded(tmp_path, 'src = ["csrc/*.cpp"]\nexclude = ["**/*"]'))
    assert caught.value.problems[0].key == ("kernel", "one", "exclude")


def test_a_source_that_is_missing_is_the_only_problem_of_its_table(tmp_path):
    with pytest.raises(ConfigError) as caught:
        source_set(loaded(tmp_path, 'src = ["none.cpp"]\nexclude = ["x"]'))
    assert [problem.code for problem in caught.value.problems] == ["B030"]
