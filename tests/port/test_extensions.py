"""Further extensions of a setup.py, and further targets of CMake, as libraries of the same wheel."""

import shutil

import pytest

from builder.cli import run
from builder.config import Backend
from builder.port import verify
from builder.port.flag_keys import extension_name
from tests.port.projects import CUDA, PLAIN, ported, write

FIRST = 'CUDAExtension("scale_it._C", ["csrc/binding.cpp", "csrc/scale.cu"])'
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension, CppExtension

setup(name="scale_it", version="2.1", packages=["scale_it"], ext_modules=[
    {extensions}
])
"""
MORE = {
    "csrc/moe.cpp": "#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n",
    "csrc/moe.cu": "",
    "scale_it/moe.py": "import scale_it._moe_C as _C\n",
}
SECOND = 'CUDAExtension("scale_it._moe_C", ["csrc/moe.cpp", "csrc/moe.cu"], define_macros=[("MOE", "2")])'
BOTH = SETUP.format(extensions=f"{FIRST}, {SECOND}")


def test_a_second_extension_is_a_library_of_its_own(tmp_path):
    config = ported(tmp_path, BOTH, files=MORE).config
    (name,) = config.extension
    assert name == "moe_c"
    assert (config.torch.src, config.extension[name].src) == (("csrc/binding.cpp",), ("csrc/moe.cpp",))
    assert config.extension[name].defines == {"MOE": 2}
    assert {part.src: part.extension for part in config.kernel.values()} == {
        ("csrc/scale.cu",): None, ("csrc/moe.cu",): "moe_c",
    }  # fmt: skip


def test_one_module_of_pybind11_is_enough_for_a_wheel_of_each_python(tmp_path):
    assert ported(tmp_path, BOTH, files=MORE).config.of_each_python(Backend.CUDA)


def test_an_extension_of_a_binding_alone_has_it_as_its_component(tmp_path):
    text = SETUP.format(extensions=f'{FIRST}, CUDAExtension("scale_it._moe_C", ["csrc/moe.cpp"])')
    config = ported(tmp_path, text, files=MORE).config
    assert config.extension["moe_c"].src == ()
    assert [part.src for part in config.kernel.values() if part.extension == "moe_c"] == [("csrc/moe.cpp",)]


def test_a_first_extension_of_a_binding_alone_has_it_as_its_component(tmp_path):
    text = SETUP.format(extensions=f'CUDAExtension("scale_it._C", ["csrc/binding.cpp"]), {SECOND}')
    config = ported(tmp_path, text, files=MORE).config
    assert config.torch.src == ()
    assert {part.extension for part in config.kernel.values()} == {None, "moe_c"}


def test_two_extensions_of_one_name_are_told_to_a_person(tmp_path):
    found = ported(tmp_path, SETUP.format(extensions=f"{FIRST},\n    {FIRST}"), files=MORE)
    assert "extension 'scale_it._C' is left out: there is another of that name" in "\n".join(found.remaining)
    assert found.config.extension == {}


def test_names_that_become_equal_have_numbers(tmp_path):
    other = SECOND.replace("scale_it._moe_C", "scale_it.moe-c")
    third = SECOND.replace("scale_it._moe_C", "scale_it")
    text = SETUP.format(extensions=f"{FIRST}, {SECOND}, {other}, {third}")
    config = ported(tmp_path, text, files=MORE).config
    assert sorted(config.extension) == ["moe_c", "moe_c_2", "scale_it_2"]
    assert len(config.kernel) == 4


def test_an_extension_whose_sources_are_not_there_is_left_out(tmp_path):
    found = ported(tmp_path, SETUP.format(extensions=f'{FIRST}, CUDAExtension("x", ["csrc/none.cu"])'), files=MORE)
    assert found.config.extension == {}
    assert "extension 'x' is left out: none of its sources is there" in "\n".join(found.remaining)


def test_a_second_extension_for_the_cpu_is_one_for_each_backend(tmp_path):
    text = BOTH.replace("CUDAExtension(", "CppExtension(").replace("moe.cu", "moe_cpu.cpp").replace(".cu", ".cpp")
    config = ported(tmp_path, text, PLAIN, files=MORE | {"csrc/scale.cpp": "", "csrc/moe_cpu.cpp": ""}).config
    assert config.extensions(Backend.CPU) == ("moe_c",)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pkg._moe_C", "moe_c"), ("_C", "c"), ("a.b.c", "b_c"), ("3", "more"), ("a.", "a"), ("Über.x", "x"),
        ("x" * 99, "x" * 40), ("", "more"), ("a.9b", "b"),
    ],
)  # fmt: skip
def test_any_name_of_a_module_gives_one_of_an_extension(text, name):
    assert extension_name(text) == name


@pytest.mark.cmake
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler: apt-get install g++")
def test_the_lines_of_all_extensions_are_compared(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verify, "machines", lambda backends: [(next(iter(backends)), CUDA)])
    shared = SECOND.replace('"csrc/moe.cu"', '"csrc/moe.cu", "csrc/scale.cu"')
    write(tmp_path, SETUP.format(extensions=f"{FIRST}, {shared}"), MORE)
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    capsys.readouterr()
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 0
    assert capsys.readouterr().out == "CUDA 13.0: 4 sources equal, 0 different\n"
    text = (tmp_path / "build.toml").read_text()
    (tmp_path / "build.toml").write_text(text.replace("MOE =", "MORE ="))
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 1
    assert "csrc/moe.cpp and 2 more: missing -DMOE=2\n" in capsys.readouterr().out
