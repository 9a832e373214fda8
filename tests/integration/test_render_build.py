"""Rendered projects built by real CMake and a real compiler, as somebody without `builder` does."""

import importlib.metadata
import importlib.util
import json
import sys
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from builder import toml
from tests import needs
from tests.given.kernels import PLAIN_CELL
from tests.given.processes import tool
from tests.integration import rendered

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    rendered.needs_torch,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into ELF files"),
]
ONE = """
[kernel.one]
backend = "cpu"
depends = ["torch"]
src = ["one.cpp"]
"""
ANSWER = "#include <cstdint>\nint64_t answer() { return 42; }\n"
PLAIN_ONE = ONE.replace('depends = ["torch"]', "depends = []")
PLAIN_ANSWER = 'extern "C" int answer() { return 42; }\n'


def build(tmp_path, kernel, backend="cpu", *definitions):
    rendered.write_project(kernel, backend, tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *definitions)
    assert done.returncode == 0, done.output
    assert "Warning" not in done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed").glob("*/*.so")
    return library


def by_pip(tmp_path, name):
    """Let pip build the wheel of a project, as somebody without `builder` does, and open it."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    done = rendered.run([*pip, "-w", tmp_path, tmp_path / "project"])
    assert done.returncode == 0, done.output
    (wheel,) = tmp_path.glob(name)
    return zipfile.ZipFile(wheel)


def dynamic(library):
    with library.open("rb") as stream:
        tags = list(ELFFile(stream).get_section_by_name(".dynamic").iter_tags())
        needed = [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
        return needed, {tag.entry.d_tag for tag in tags}


def test_a_kernel_builds_loads_and_leaves_nothing_of_the_machine(tmp_path):
    kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": ANSWER})
    library = build(tmp_path, kernel)
    assert rendered.registered(tmp_path / "installed", "small", "CPU") == "['answer']"
    needed, tags = dynamic(library)
    assert "libtorch_cpu.so" in needed
    assert not any("python" in name or name == "libtorch.so" for name in needed)
    assert not tags & {"DT_RPATH", "DT_RUNPATH", "DT_TEXTREL"}
    content = library.read_bytes()
    for path in (tmp_path, Path(sys.prefix), Path.home()):
        assert str(path).encode() not in content
    with library.open("rb") as stream:
        symbols = list(ELFFile(stream).get_section_by_name(".dynsym").iter_symbols())
    assert not [symbol.name for symbol in symbols if symbol.entry.st_info.bind == "STB_GNU_UNIQUE"]
    assert "__libc_single_threaded" not in {symbol.name for symbol in symbols}


@pytest.mark.slow
def test_a_function_that_moved_to_a_newer_library_does_not_bind_the_kernel_to_it(tmp_path):
    """The stable headers of torch 2.15 call dlsym."""
    answer = "#include <cstdint>\n#include <dlfcn.h>\n"
    answer += (
        'int64_t answer() { return dlsym(RTLD_DEFAULT, "malloc") != nullptr && !dlsym(RTLD_DEFAULT, "no such"); }\n'
    )
    kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": answer})
    library = build(tmp_path, kernel)
    with library.open("rb") as stream:
        needed = ELFFile(stream).get_section_by_name(".gnu.version_r")
        versions = {version.name for _, entries in needed.iter_versions() for version in entries}
    glibc = {tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in versions if "GLIBC_2" in name}
    assert glibc
    assert max(glibc) <= (2, 28)
    call = "import torch, small; assert small.ops.answer(torch.ones(1)) == 1"
    done = rendered.run([sys.executable, "-c", call], env=rendered.environment(PYTHONPATH=tmp_path / "installed"))
    assert done.returncode == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize("stable", [True, False])
def test_a_kernel_is_linked_without_the_libraries_of_torch_and_without_python(tmp_path, stable):
    torch = tmp_path / "torch"
    torch.mkdir()
    for name in ("include", "version.py"):
        (torch / name).symlink_to(rendered.torch_folder() / name)
    if stable:
        kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": ANSWER})
        module, op, needed = "small", "answer", {"libtorch_cpu.so"}
    else:
        kernel, module, op, needed = rendered.EXAMPLES / "relu", "relu", "relu", {"libtorch_cpu.so", "libc10.so"}
    rendered.write_project(kernel, "cpu", tmp_path / "project")
    definitions = (f"-DKERNEL_TORCH_DIR={torch}", "-DPython_EXECUTABLE=/no/python")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *definitions)
    assert done.returncode == 0, done.output
    assert "Warning" not in done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed").glob("*/*.so")
    assert {name for name in dynamic(library)[0] if "torch" in name or "c10" in name} == needed
    assert op in rendered.registered(tmp_path / "installed", module, "CPU")


@pytest.mark.slow
def test_two_folders_give_the_same_bytes(tmp_path):
    libraries = []
    for name in ("one", "a second, longer"):
        kernel = rendered.small_kernel(tmp_path / name / "kernel", ONE, {"one.cpp": ANSWER})
        libraries.append(build(tmp_path / name, kernel).read_bytes())
    assert libraries[0] == libraries[1]


ODD = ["with space", "with'quote", "ünïcödé-日本", "with(bracket)", "with#hash", "a&b", "a%b", "$HOME"]


def odd_kernel(root, name):
    """Write a kernel whose files and folders have an odd name."""
    components = f"""
[kernel.one]
backend = "cpu"
depends = []
src = [{toml.spelled(f"{name}/{name}.cpp")}]
include = [{toml.spelled(f"{name}/inc")}]
"""
    source = '#include "value.h"\n' + PLAIN_ANSWER.replace("42", "VALUE")
    files = {f"{name}/{name}.cpp": source, f"{name}/inc/value.h": "#define VALUE 7\n"}
    return rendered.plain_kernel(root, components, files)


@pytest.mark.parametrize(
    "name", [ODD[0], *(pytest.param(name, marks=pytest.mark.slow) for name in (*ODD[1:4], '"double"'))]
)
def test_odd_names_of_files_work(tmp_path, name):
    build(tmp_path, odd_kernel(tmp_path / "kernel", name))


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in ODD[:3]])
def test_odd_names_of_the_checkout_work(tmp_path, name):
    kernel = rendered.plain_kernel(tmp_path / name / "kernel", PLAIN_ONE, {"one.cpp": PLAIN_ANSWER})
    build(tmp_path / name, kernel)


@pytest.mark.slow
def test_a_wheel_is_built_from_a_kernel_in_a_folder_with_any_name(builder, tmp_path):
    folder = tmp_path / "with \"double\" and 'single' quote, ünïcödé-日本 $HOME"
    kernel = rendered.plain_kernel(folder / "kernel", PLAIN_ONE, {"one.cpp": PLAIN_ANSWER})
    builder("build", kernel, "--variant", PLAIN_CELL, "--output", folder / "dist", cwd=folder, check=0)
    assert sorted(path.suffix for path in (folder / "dist").iterdir()) == [".json", ".whl"]


TWO = """
[kernel.one]
backend = "cpu"
depends = []
src = ["one.cpp", "shared.cpp"]
include = ["first"]
cxx-flags = ["-DONE=1"]

[kernel.two]
backend = "cpu"
depends = []
src = ["deep/one.cpp", "shared.cpp"]
include = ["second"]
cxx-flags = ["-DTWO=2"]
"""


def two(tmp_path, one="", deep="", shared=""):
    files = {
        "one.cpp": one or PLAIN_ANSWER,
        "deep/one.cpp": deep or "int other() { return 1; }\n",
        "shared.cpp": shared or "int shared() { return 2; }\n",
        "first/first.h": "#pragma once\n",
        "second/second.h": "#pragma once\n",
    }
    return rendered.plain_kernel(tmp_path / "kernel", TWO, files)


@pytest.mark.slow
def test_sources_of_one_name_do_not_meet(tmp_path):
    build(tmp_path, two(tmp_path))


@pytest.mark.slow
def test_a_source_of_two_components_is_compiled_once_with_the_settings_of_both(tmp_path):
    shared = '#include "first.h"\n#include "second.h"\nint shared() { return ONE + TWO; }\n'
    build(tmp_path, two(tmp_path, shared=shared))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [('#include "second.h"\n', "second.h"), ("int two = TWO;\n", "TWO")],
    ids=["include directories", "flags"],
)
def test_a_component_does_not_see_the_settings_of_another(tmp_path, text, complaint):
    rendered.write_project(two(tmp_path, one=text + PLAIN_ANSWER), "cpu", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode == 0, done.output
    compiled = rendered.run([tool("cmake"), "--build", tmp_path / "build"])
    assert compiled.returncode != 0
    assert complaint in compiled.output


LAUNCHER = """#!{python}
import json, os, sys
with open({log!r}, "a", encoding="utf-8") as log:
    log.write(json.dumps(sys.argv[2:]) + chr(10))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.slow
def test_flags_reach_the_compiler_unchanged_and_in_order(tmp_path):
    flags = [
        '-DA="x y"',
        "-DB='$HOME ${PWD} $ENV{HOME} $(id) `id`'",
        "-DC=@PROJECT_NAME@",
        "-DD=a)b(c#d",
        "-DE=a\\b\\\\c",
        "-DF=ünïcödé日本",
        "-DG=[1]",
        "-DH=100%",
        "-DI=<b>&|>",
        "-Wno-unused",
        "-Wno-error",
        "-Wno-unused",
        "-include",
        "cstdint",
        "-include",
        "cstdio",
        "-DJ=" + "x" * 4000,
    ]
    components = PLAIN_ONE + f"cxx-flags = {toml.spelled(flags)}\n"
    kernel = rendered.plain_kernel(tmp_path / "kernel", components, {"one.cpp": PLAIN_ANSWER})
    rendered.write_project(kernel, "cpu", tmp_path / "project")
    launcher = tmp_path / "launcher.py"
    launcher.write_text(LAUNCHER.format(python=sys.executable, log=str(tmp_path / "arguments")))
    launcher.chmod(0o755)
    definition = f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"
    done = rendered.configure(tmp_path / "project", tmp_path / "build", definition)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    calls = [json.loads(line) for line in (tmp_path / "arguments").read_text(encoding="utf-8").splitlines()]
    (seen,) = (call for call in calls if call[-1].endswith("/one.cpp"))
    start = seen.index(flags[0])
    assert seen[start : start + len(flags)] == flags


def test_headers_older_than_the_target_are_refused(tmp_path):
    kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": ANSWER})
    config = kernel / "build.toml"
    config.write_text(config.read_text().replace('cpu = "2.10"', 'cpu = "2.99"'))
    rendered.write_project(kernel, "cpu", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode != 0
    assert "targets the stable ABI of torch 2.99" in rendered.words(done.output)


def test_a_torch_of_another_backend_is_named(tmp_path):
    rendered.write_project(rendered.EXAMPLES / "relu", "xpu", tmp_path / "project")
    lists = tmp_path / "project/CMakeLists.txt"
    lines = lists.read_text().splitlines()
    oneapi = ("include(cmake/xpu/find.cmake)", "kernel_xpu_find()", "find_package(dnnl")
    lists.write_text("\n".join(line for line in lines if not line.startswith(oneapi)) + "\n")
    done = rendered.configure(tmp_path / "project", tmp_path / "build")
    assert done.returncode != 0
    output = rendered.words(done.output)
    assert "this kernel is for xpu, and the torch found," in output
    assert "help: install a build of torch for xpu" in output


OF_PYTHON = "#include <Python.h>\n" + ANSWER


@pytest.mark.slow
@needs.headers_of_python
def test_a_source_that_includes_python_is_built_against_its_limited_api(tmp_path):
    kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": OF_PYTHON})
    library = build(tmp_path, kernel)
    assert library.name.endswith(".abi3.so")
    assert "-DPy_LIMITED_API=0x03090000" in rendered.commands(tmp_path / "build")["one.cpp"]
    assert rendered.registered(tmp_path / "installed", "small", "CPU") == "['answer']"


def test_python_headers_that_are_missing_are_asked_for_with_file_and_line(tmp_path):
    kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": OF_PYTHON})
    rendered.write_project(kernel, "cpu", tmp_path / "project")
    # As on a machine with Python and without its headers: an include folder that has none.
    definitions = (f"-DPython_INCLUDE_DIR={tmp_path}", "-DPython_FIND_VIRTUALENV=FIRST")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *definitions)
    assert done.returncode != 0
    said = rendered.words(done.output)
    assert "one.cpp:1 uses <Python.h>, which needs the headers of Python" in said
    assert "apt-get install python3-dev" in said


@pytest.mark.parametrize(
    ("write", "component", "answer", "module", "requires"),
    [
        pytest.param(rendered.plain_kernel, PLAIN_ONE, PLAIN_ANSWER, "_library", [], id="plain"),
        pytest.param(
            *(rendered.small_kernel, ONE, ANSWER, "_ops", ["torch>=2.10"]), id="torch", marks=pytest.mark.slow
        ),
    ],
)
def test_pip_builds_a_wheel_without_builder(tmp_path, write, component, answer, module, requires):  # noqa: PLR0917
    kernel = write(tmp_path / "kernel", component, {"one.cpp": answer})
    rendered.write_project(kernel, "cpu", tmp_path / "project")
    with by_pip(tmp_path, "small-1.0.0-py3-none-*.whl") as archive:
        names = archive.namelist()
        metadata = archive.read("small-1.0.0.dist-info/METADATA").decode()
        (library,) = (name for name in names if name.endswith(".so"))
        assert json.loads(archive.read("small/metadata.json"))["id"] == Path(library).name.removesuffix(".so")
    assert message_from_string(metadata).get_all("Requires-Dist", []) == requires
    package = {name for name in names if not name.startswith("small-1.0.0.dist-info/")}
    assert package == {"small/__init__.py", f"small/{module}.py", "small/metadata.json", library}


@pytest.mark.slow
def test_the_classic_example_builds_and_asks_for_the_torch_it_was_built_with(tmp_path):
    rendered.write_project(rendered.EXAMPLES / "relu", "cpu", tmp_path / "project")
    with by_pip(tmp_path, "relu-1.0.0-py3-none-*.whl") as archive:
        archive.extractall(tmp_path / "installed")
        metadata = archive.read("relu-1.0.0.dist-info/METADATA").decode()
    major, minor = importlib.metadata.version("torch").split(".")[:2]
    assert f"Requires-Dist: torch=={major}.{minor}.*\n" in metadata
    assert rendered.registered(tmp_path / "installed", "relu", "CPU") == "['relu', 'relu_backward']"


@pytest.mark.slow
def test_a_noarch_project_makes_a_pure_wheel(tmp_path):
    rendered.write_project(rendered.EXAMPLES / "silu-and-mul", "cuda", tmp_path / "project")
    with by_pip(tmp_path, "silu_and_mul-1.0.0-py3-none-any.whl") as archive:
        assert json.loads(archive.read("silu_and_mul/metadata.json"))["backend"] == {"type": "cuda"}
        archive.extractall(tmp_path / "installed")
    script = "import silu_and_mul; from silu_and_mul._ops import ops, add_op_namespace_prefix as p; print(p('x'))"
    done = rendered.run([sys.executable, "-c", script], env=rendered.environment(PYTHONPATH=tmp_path / "installed"))
    assert "_silu_and_mul_cpu_" in done.output, "a CPU torch runs it on the CPU"


@pytest.mark.network
@pytest.mark.parametrize("version", ["3.26", "3.31", "4.0"])
def test_other_versions_of_cmake_take_the_project_without_a_warning(tmp_path, version):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", tmp_path / "cmake", f"cmake=={version}.*"]
    assert rendered.run(pip).returncode == 0
    cmake = tmp_path / "cmake/cmake/data/bin/cmake"
    kernel = rendered.small_kernel(tmp_path / "kernel", ONE, {"one.cpp": ANSWER})
    rendered.write_project(kernel, "cpu", tmp_path / "project")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", cmake=cmake)
    assert done.returncode == 0, done.output
    assert "Warning" not in done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed", cmake=cmake)
    assert rendered.registered(tmp_path / "installed", "small", "CPU") == "['answer']"
