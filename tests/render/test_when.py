"""Conditions of components in a rendered project, which decides by what it finds."""

import pytest

from builder.config import Backend
from builder.kernel import load
from builder.render import render
from tests.render.small import kernel, lists


def test_a_component_stands_in_its_condition_with_all_that_is_its_own(tmp_path):
    lines = 'when = { cuda = ">=12.8,<14.0", torch = "!=2.11", system = "x86_64-linux" }\nlibraries = ["dl"]'
    text = lists(tmp_path, backend="cuda", component=lines + "\nfile-flags = { 'one.cpp' = ['-O1'] }")
    condition = """kernel_when_holds(
  holds
  NAME one
  CUDA_IS
    >=12.8
    "<14.0"
  TORCH_IS
    "!=2.11"
  SYSTEM_IS
    x86_64-linux
)
if(holds)
"""
    inside = text.partition(condition)[2].partition("endif()\n")[0]
    assert [name for name in ("component", "file_flags", "libraries") if f"{name}(" in inside] == [
        "component", "file_flags", "libraries",
    ]  # fmt: skip
    assert "include(cmake/when/holds.cmake)\n" in text
    assert text.count("kernel_when_any()\n") == 1


def test_a_project_with_an_unconditional_component_is_never_empty(tmp_path):
    more = '\n[kernel.two]\nbackend = "cuda"\ndepends = []\nsrc = ["one.cpp"]\nwhen = { torch = ">=2.10" }\n'
    text = lists(tmp_path, backend="cuda", extra=more)
    assert "kernel_when_any" not in text
    assert text.count("kernel_when_holds(") == 1


def test_an_architecture_is_asked_of_the_table_of_toolkits(tmp_path):
    lines = 'cuda-capabilities = ["8.0", "10.0+PTX"]\nwhen = { arch = ["10.0"] }'
    text = lists(tmp_path, backend="cuda", component=lines)
    assert "  CAPABILITIES\n    CUDA>=12.8 10.0+PTX\n    CUDA>=11.8\n)\nif(holds)\n" in text


@pytest.mark.parametrize(("arch", "compiled"), [("gfx942", "yes"), ("gfx90a", "no")])
def test_an_architecture_of_rocm_is_decided_by_the_config(tmp_path, arch, compiled):
    lines = f'rocm-archs = ["gfx942"]\nwhen = {{ arch = "{arch}" }}'
    text = lists(tmp_path, backend="rocm", component=lines)
    assert f"  NAME one\n  COMPILED {compiled}\n)\nif(holds)\n" in text


def test_a_project_without_conditions_has_none_of_their_modules(tmp_path):
    project = render(kernel(tmp_path), Backend.CPU)
    assert not [
        path for path in project.files if path.startswith(("cmake/when/", "cmake/objects/", "cmake/file_flags"))
    ]


@pytest.mark.parametrize(
    ("used", "empty"),
    [
        ("defines = { X = 1 }", "defines = { X = false }"),
        ('libraries = ["dl"]', "libraries = []"),
        ("file-flags = { 'one.cpp' = ['-O1'] }", "file-flags = { 'one.cpp' = [] }"),
        ('src = ["one.cpp", "two.cpp"]', 'src = ["one.cpp", "two.cpp"]\nexclude = ["two.cpp"]'),
        ('when = { torch = ">=2.10" }', ""),
    ],
)
def test_a_key_of_ours_changes_the_project_only_where_it_says_something(tmp_path, used, empty):
    found = {}
    for name, lines in (("used", used), ("empty", empty), ("plain", "")):
        kernel(tmp_path / name, files={"two.cpp": ""})
        config = tmp_path / name / "build.toml"
        text = config.read_text(encoding="utf-8")
        part = text.partition("[kernel.one]")
        body = part[2].replace('src = ["one.cpp"]', lines if "src" in lines else 'src = ["one.cpp"]\n' + lines)
        config.write_text("".join((*part[:2], body)), encoding="utf-8")
        found[name] = render(load(tmp_path / name), Backend.CPU).digest
    assert found["empty"] == found["plain"]
    assert found["used"] != found["plain"]
