"""The macros of `defines` reach the compiler as they stand, whatever is in them."""

import json
import re
import shutil
import string
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from builder import toml
from builder.config import Backend
from builder.config.source_tables import component
from builder.errors import ConfigError
from builder.render import arguments, cmake_arguments, quoting, render
from builder.resources import CMAKE
from tests.given.files import program, write
from tests.given.processes import run, tool
from tests.render.small import kernel, lists

DEFINES = "defines = { USE_X = true, OFF = false, N = 4, TYPE = 'half' }"
OPTIONS = "    -DUSE_X\n    -DN=4\n    -DTYPE=half\n"


@pytest.mark.parametrize(
    ("backend", "keywords"),
    [
        ("cpu", ["CXX_FLAGS"]),
        ("cuda", ["CXX_FLAGS", "CUDA_FLAGS"]),
        ("rocm", ["CXX_FLAGS", "HIP_FLAGS"]),
        ("xpu", ["CXX_FLAGS"]),
        ("metal", ["CXX_FLAGS", "METAL_FLAGS"]),
    ],
)
def test_every_language_of_a_component_gets_its_macros(tmp_path, backend, keywords):
    text = lists(tmp_path, backend=backend, component=DEFINES)
    assert "OFF" not in text
    blocks = re.findall(r"^  (\w+)\n((?:    .*\n)+)", text, re.MULTILINE)
    assert [keyword for keyword, block in blocks if OPTIONS in block] == keywords


@pytest.mark.parametrize("framework", ["torch", "tvm-ffi"])
def test_a_binding_gets_its_own_macros_and_not_those_of_a_component(tmp_path, framework):
    text = lists(tmp_path, framework=framework, torch=DEFINES)
    binding, _, part = text.partition("kernel_cpu_component(\n  _tiny")
    assert OPTIONS in binding
    assert "-D" not in part


def test_macros_come_before_the_flags_of_the_component(tmp_path):
    assert "    -DX=1\n    -UX\n" in lists(tmp_path, component='defines = { X = 1 }\ncxx-flags = ["-UX"]')


def test_a_config_without_macros_renders_as_one_with_none(tmp_path):
    plain = render(kernel(tmp_path, component=""), Backend.CPU)
    assert render(kernel(tmp_path, component="defines = { OFF = false }"), Backend.CPU).files == plain.files


@pytest.mark.parametrize("value", ["a;b", "$<1:x>", "[", "end\\", "two\nlines"])
def test_a_value_that_cmake_cannot_hold_is_refused_at_its_macro(tmp_path, value):
    lines = f"defines = {{ A = 1, X = {toml.spelled(value)} }}"
    with pytest.raises(ConfigError) as caught:
        render(kernel(tmp_path, component=lines), Backend.CPU)
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("B060", ("kernel", "one", "defines", "X"))
    assert problem.span is not None


# --- through real CMake, ninja and a shell ---

PROJECT = """cmake_minimum_required(VERSION 3.26...4.3)
project(probe LANGUAGES CXX)
include("{cmake}/cpu/component.cmake")
add_library(probe OBJECT)
kernel_cpu_component(
  probe
  NAME probe
{arguments}
)
"""
RECORDER = """#!{python}
import json, sys
open(sys.argv[sys.argv.index("-o") + 1], "w").close()
json.dump(sys.argv[1:], open({output!r}, "w"))
"""
PIECES = [
    *string.punctuation,
    *"\t\r a1\u00fc\u202e",
    "${HOME}",
    "$ENV{HOME}",
    "$(id)",
    "@X@",
    "]]",
    "#[[",
    "%%",
    '"q"',
    "SHELL:",
]
VALUES = st.one_of(
    st.booleans(),
    st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1),
    st.text(max_size=30),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)


@pytest.mark.cmake
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(VALUES, max_size=40))
@example(PIECES)
def test_a_compiler_gets_each_value_exactly_or_it_is_refused(tmp_path, values):
    given_ = {f"M{number}": value for number, value in enumerate(values)}
    accepted = {
        name: value
        for name, value in given_.items()
        if all(quoting.why_not_cmake(option) is None for option in arguments.define_options({name: value}).values())
    }
    shutil.rmtree(tmp_path / "build", ignore_errors=True)
    part = component(Backend.CPU)(depends=(), src=("one.cpp",), defines=accepted)
    recorder = program(
        tmp_path / "recorder", RECORDER.format(python=sys.executable, output=str(tmp_path / "argv.json"))
    )
    text = PROJECT.format(cmake=CMAKE.as_posix(), arguments=cmake_arguments(arguments.component(part)))
    write(tmp_path, {"CMakeLists.txt": text, "one.cpp": ""})
    ninja = tool("ninja")
    options = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={recorder}", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    for command in ([tool("cmake"), "-G", "Ninja", "-S", ".", "-B", "build", *options], [ninja, "-C", "build"]):
        run(*command, cwd=tmp_path)
    # The definitions that the compiler was started with.
    found = json.loads((tmp_path / "argv.json").read_text(encoding="utf-8"))
    assert [word for word in found if word.startswith("-DM")] == [
        f"-D{name}" if value is True else f"-D{name}={value}" for name, value in accepted.items() if value is not False
    ]


# --- through the real nvcc, which hands what it gets to a shell ---

FOR_NVCC = [
    "a,b", "f(1,2)", "$HOME", "$(id)", "`id`", r"a\b", '"half"', r'"a\"b"', r'"\n"', '"$HOME"', '("a",1)', "it's",
    "',' '\"'",
    "a b", "x=y", "a#b", "50%", "a&b|c", "<int, 4>", "~/x", "*", "!x", "{1, 2}", r"\\", '"a,b"', "a'b,c'd",
]  # fmt: skip


@pytest.mark.cuda
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_gives_each_value_to_the_preprocessor_as_it_stands(tmp_path):
    macros = {f"M{number}": value for number, value in enumerate(FOR_NVCC)}
    source = tmp_path / "one.cu"
    source.write_text("".join(f"@{name}@ {name} @end@\n" for name in macros).replace("@M", "@m"), encoding="utf-8")
    command = ["nvcc", "-E", *arguments.nvcc_define_options(macros), source]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = dict(
        line.removesuffix(" @end@").removeprefix("@m").split("@ ", 1)
        for line in done.stdout.splitlines()
        if line.startswith("@m")
    )
    assert lines == {name.removeprefix("M"): value for name, value in macros.items()}
