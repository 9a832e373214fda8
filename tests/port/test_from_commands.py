"""The compile lines of a CMake project are a start for its config."""

import json

import pytest

from builder.cli import run
from builder.config.values import Backend
from builder.errors import BuilderError, NothingToDoError
from builder.port import port
from builder.port.lines import recording
from tests.port.projects import SIMPLE, write

COMMON = (
    "-DTORCH_EXTENSION_NAME=ops -Dops_EXPORTS -I{root}/inc -isystem /x/torch/include -isystem /usr/local/cuda/include"
)
ARCH = "--generate-code=arch=compute_90a,code=[sm_90a]"
GPU = f"/usr/local/cuda/bin/nvcc {{common}} -O3 -DNDEBUG -std=c++17 {ARCH} {{more}} -x cu"
CXX = "/usr/bin/c++ {common} -O3 -DNDEBUG -fPIC {more}"


def project(root, *entries, at=None):
    """Write a project and its compile lines, each of a source, more flags and the target; return the file of them."""
    written = []
    for source, *rest in entries:
        more, target = (*rest, *("", "ops")[len(rest) :])
        command = (GPU if source.endswith(".cu") else CXX).format(common=COMMON.format(root=at or root), more=more)
        file, output = f"{at or root}/{source}", f"CMakeFiles/{target}.dir/{source}.o"
        entry = {"directory": f"{at or root}/build", "file": file, "output": output}
        written.append({**entry, "command": f"{command} -o {output} -c {file}"})
    sources = dict.fromkeys(("csrc/a.cu", "csrc/b.cu", "csrc/x.cpp", "inc/x.h"), "")
    write(root, SIMPLE, {**sources, "compile_commands.json": json.dumps(written)})
    return root / "compile_commands.json"


def test_sources_flags_and_architectures_are_those_of_the_target(tmp_path):
    path = project(tmp_path, ["csrc/binding.cpp"], ["csrc/a.cu", "-DWIDTH=4 -lineinfo"])
    found = port(recording(path, tmp_path), tmp_path).config
    assert found.general.backends == (Backend.CUDA,)
    assert found.torch.src == ("csrc/binding.cpp",)
    (component,) = found.kernel.values()
    assert component.src == ("csrc/a.cu",)
    assert component.include == ("inc",)
    assert component.defines == {"WIDTH": 4}
    assert component.cuda_flags == ("-lineinfo",)
    assert component.cuda_capabilities == ("9.0a",)


def test_sources_of_one_target_with_other_flags_are_another_component(tmp_path):
    entries = ["csrc/binding.cpp"], ["csrc/a.cu"], ["csrc/b.cu", "--use_fast_math"], ["csrc/x.cpp", "-O1"]
    found = port(recording(project(tmp_path, *entries), tmp_path), tmp_path).config
    parts = {name: (part.src, part.cuda_flags) for name, part in found.kernel.items()}
    assert parts == {"ops": (("csrc/a.cu", "csrc/x.cpp"), ()), "ops_2": (("csrc/b.cu",), ("--use_fast_math",))}


def test_the_largest_target_comes_first(tmp_path):
    entries = ["csrc/x.cpp", "", "helper"], ["csrc/a.cu"], ["csrc/b.cu"]
    (made,) = recording(project(tmp_path, *entries), tmp_path).runs
    assert [each.name for each in made.extensions] == ["ops", "helper"]


def test_a_target_that_binds_is_an_extension_and_another_is_left_out(tmp_path):
    entries = [
        *(["csrc/binding.cpp"], ["csrc/a.cu"], ["csrc/x.cpp"]),
        *(["csrc/binding.cpp", "", "_more_C"], ["csrc/b.cu", "", "_more_C"]),
        ["csrc/x.cpp", "", "helper"],
    ]
    found = port(recording(project(tmp_path, *entries), tmp_path), tmp_path)
    assert [(name, table.src) for name, table in found.config.extension.items()] == [("more_c", ("csrc/binding.cpp",))]
    members = {part.src: part.extension for part in found.config.kernel.values()}
    assert members == {("csrc/a.cu", "csrc/x.cpp"): None, ("csrc/b.cu",): "more_c"}
    said = "target 'helper' is left out: no source of it registers ops or makes a Python module"
    assert said in found.remaining


def test_arguments_as_a_list_are_read_too(tmp_path):
    words = ["c++", "-DX", "-I", "inc", "-c", "csrc/x.cpp"]
    path = project(tmp_path)
    path.write_text(json.dumps([{"directory": str(tmp_path), "arguments": words, "file": "csrc/x.cpp"}]))
    (made,) = recording(path, tmp_path).runs
    line = made.extensions[0].lines["csrc/x.cpp"]
    assert (line.flags.macros, line.include) == ({"X": None}, ("inc",))


def test_sources_of_elsewhere_alone_are_nothing_to_do(tmp_path):
    path = project(tmp_path, ["csrc/a.cu"], at="/elsewhere")
    with pytest.raises(NothingToDoError, match="compiles no source of"):
        recording(path, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[{"file": "x"}]', "[" * 100_000, '[{"directory": "/", "file": "x", "command": "\'"}]']
)
def test_what_is_no_such_file_is_said(tmp_path, text):
    path = tmp_path / "compile_commands.json"
    path.write_text(text)
    with pytest.raises(BuilderError, match="cannot be read as compile commands"):
        recording(path, tmp_path)


def test_the_command_takes_the_file(tmp_path, capsys):
    path = project(tmp_path, ["csrc/binding.cpp"], ["csrc/a.cu"])
    assert run(["port", str(tmp_path), "--compile-commands", str(path), "--print"]) == 0
    assert "[kernel.ops]\n" in capsys.readouterr().out
    assert run(["port", str(tmp_path), "--compile-commands", str(path), "--verify"]) == 2


def test_a_project_without_gpu_code_is_for_the_cpu_and_its_package_is_found(tmp_path):
    path = project(tmp_path, ["csrc/binding.cpp"], ["csrc/x.cpp"])
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x-y"\nversion = "3.1"\nlicense = "MIT"\n')
    (tmp_path / "src/x_y").mkdir(parents=True)
    (tmp_path / "src/x_y/__init__.py").touch()
    found = port(recording(path, tmp_path), tmp_path).config
    assert found.general.backends == (Backend.CPU,)
    assert (found.general.name, found.general.version, found.general.license) == ("x-y", 3, "MIT")
    assert found.wheel.package == "src/x_y"


def test_a_setup_that_leaves_it_to_cmake_is_told_of_the_option(tmp_path, capsys):
    write(tmp_path, "from setuptools import setup\nsetup(name='x')\n", {"CMakeLists.txt": ""})
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 2
    assert "--compile-commands FILE" in capsys.readouterr().err
