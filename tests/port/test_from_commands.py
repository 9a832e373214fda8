"""The compile lines of a CMake project are a start for its config."""

import json

import pytest

from builder.cli import run
from builder.config.values import Backend
from builder.errors import BuilderError, NothingToDoError
from builder.port import port
from builder.port.lines import recording
from tests.port.projects import BINDING, SIMPLE, write

COMMON = (
    "-DTORCH_EXTENSION_NAME=ops -Dops_EXPORTS -I{root}/inc -isystem /x/torch/include -isystem /usr/local/cuda/include"
)
ARCH = "--generate-code=arch=compute_90a,code=[sm_90a]"
GPU = f"/usr/local/cuda/bin/nvcc {{common}} -O3 -DNDEBUG -std=c++17 {ARCH} {{more}} -x cu"
CXX = "/usr/bin/c++ {common} -O3 -DNDEBUG -fPIC {more}"


def entry(root, source, *, more="", target="ops"):
    template = GPU if source.endswith(".cu") else CXX
    command = template.format(common=COMMON.format(root=root), more=more)
    output = f"CMakeFiles/{target}.dir/{source}.o"
    return {
        "directory": f"{root}/build",
        "command": f"{command} -o {output} -c {root}/{source}",
        "file": f"{root}/{source}",
        "output": output,
    }


def project(tmp_path, *entries):
    sources = ("csrc/a.cu", "csrc/b.cu", "csrc/x.cpp")
    write(tmp_path, SIMPLE, dict.fromkeys(sources, "") | {"inc/x.h": "", "csrc/binding.cpp": BINDING})
    path = tmp_path / "compile_commands.json"
    path.write_text(json.dumps(list(entries)))
    return path


def test_sources_flags_and_architectures_are_those_of_the_target(tmp_path):
    entries = [entry(tmp_path, "csrc/binding.cpp"), entry(tmp_path, "csrc/a.cu", more="-DWIDTH=4 -lineinfo")]
    found = port(recording(project(tmp_path, *entries), tmp_path), tmp_path).config
    assert found.general.backends == (Backend.CUDA,)
    assert found.torch.src == ("csrc/binding.cpp",)
    (component,) = found.kernel.values()
    assert component.src == ("csrc/a.cu",)
    assert component.include == ("inc",)
    assert component.defines == {"WIDTH": 4}
    assert component.cuda_flags == ("-lineinfo",)
    assert component.cuda_capabilities == ("9.0a",)


def test_sources_of_one_target_with_other_flags_are_another_component(tmp_path):
    entries = [
        entry(tmp_path, "csrc/binding.cpp"),
        entry(tmp_path, "csrc/a.cu"),
        entry(tmp_path, "csrc/b.cu", more="--use_fast_math"),
        entry(tmp_path, "csrc/x.cpp", more="-O1"),
    ]
    found = port(recording(project(tmp_path, *entries), tmp_path), tmp_path).config
    parts = {name: (part.src, part.cuda_flags) for name, part in found.kernel.items()}
    assert parts == {"ops": (("csrc/a.cu", "csrc/x.cpp"), ()), "ops_2": (("csrc/b.cu",), ("--use_fast_math",))}


def test_the_largest_target_comes_first(tmp_path):
    entries = [
        entry(tmp_path, "csrc/x.cpp", target="helper"),
        entry(tmp_path, "csrc/a.cu"),
        entry(tmp_path, "csrc/b.cu"),
    ]
    (made,) = recording(project(tmp_path, *entries), tmp_path).runs
    assert [each.name for each in made.extensions] == ["ops", "helper"]


def test_a_target_that_binds_is_an_extension_and_another_is_left_out(tmp_path):
    entries = [
        entry(tmp_path, "csrc/binding.cpp"),
        entry(tmp_path, "csrc/a.cu"),
        entry(tmp_path, "csrc/x.cpp"),
        entry(tmp_path, "csrc/binding.cpp", target="_more_C"),
        entry(tmp_path, "csrc/b.cu", target="_more_C"),
        entry(tmp_path, "csrc/x.cpp", target="helper"),
    ]
    found = port(recording(project(tmp_path, *entries), tmp_path), tmp_path)
    assert [(name, table.src) for name, table in found.config.extension.items()] == [("more_c", ("csrc/binding.cpp",))]
    members = {part.src: part.extension for part in found.config.kernel.values()}
    assert members == {("csrc/a.cu", "csrc/x.cpp"): None, ("csrc/b.cu",): "more_c"}
    said = "target 'helper' is left out: no source of it registers ops or makes a Python module"
    assert said in found.remaining


def test_arguments_as_a_list_are_read_too(tmp_path):
    words = ["c++", "-DX", "-I", "inc", "-c", "csrc/x.cpp"]
    entries = [{"directory": str(tmp_path), "arguments": words, "file": "csrc/x.cpp"}]
    (made,) = recording(project(tmp_path, *entries), tmp_path).runs
    line = made.extensions[0].lines["csrc/x.cpp"]
    assert (line.flags.macros, line.include) == ({"X": None}, ("inc",))


def test_sources_of_elsewhere_alone_are_nothing_to_do(tmp_path):
    path = project(tmp_path, entry("/elsewhere", "csrc/a.cu"))
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
    path = project(tmp_path, entry(tmp_path, "csrc/binding.cpp"), entry(tmp_path, "csrc/a.cu"))
    assert run(["port", str(tmp_path), "--compile-commands", str(path), "--print"]) == 0
    assert "[kernel.ops]\n" in capsys.readouterr().out
    assert run(["port", str(tmp_path), "--compile-commands", str(path), "--verify"]) == 2


def test_a_project_without_gpu_code_is_for_the_cpu_and_its_package_is_found(tmp_path):
    path = project(tmp_path, entry(tmp_path, "csrc/binding.cpp"), entry(tmp_path, "csrc/x.cpp"))
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
