"""Keys that only this builder reads, in projects that real CMake and real compilers build."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration import rendered

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    rendered.needs_torch,
]
nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
ANSWER = "#include <cstdint>\nint64_t answer() { return 42; }\n"


def component(name, lines="", *, backend="cpu", source="one.cpp"):
    return f'\n[kernel.{name}]\nbackend = "{backend}"\ndepends = []\nsrc = ["{source}"]\n{lines}\n'


def configure(tmp_path, components, files, *definitions, backend="cpu"):
    kernel = rendered.small_kernel(tmp_path / "kernel", components, files, backend=backend)
    rendered.write_project(kernel, backend, tmp_path / "project")
    return rendered.configure(tmp_path / "project", tmp_path / "build", *definitions)


def built(tmp_path, components, files, *definitions, backend="cpu"):
    """Configure, compile and install; return the library."""
    done = configure(tmp_path, components, files, *definitions, backend=backend)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed")
    (library,) = (tmp_path / "installed/small").glob("*.so")
    return library


def needed(library):
    done = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    return {line.partition("[")[2].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line}


@pytest.mark.cuda
@nvcc
def test_a_kernel_is_linked_to_the_driver_on_a_machine_without_one(tmp_path):
    lines = 'libraries = ["cuda_driver", "dl", "rt"]\ncuda-capabilities = ["9.0"]'
    source = "#include <cuda.h>\n#include <cstdint>\nint64_t answer() { int n; cuDeviceGetCount(&n); return n; }\n"
    library = built(
        tmp_path, component("one", lines, backend="cuda", source="one.cu"), {"one.cu": source}, backend="cuda"
    )
    assert "libcuda.so.1" in needed(library)


@pytest.mark.cuda
@nvcc
def test_a_library_that_the_toolkit_lacks_is_named_with_a_remedy(tmp_path):
    lines = 'libraries = ["nvjpeg"]\ncuda-capabilities = ["9.0"]'
    if (Path(shutil.which("nvcc")).resolve().parent.parent / "lib64/libnvjpeg.so").exists():
        pytest.skip("the toolkit of the nvcc on PATH has libnvjpeg, and the test is of one that lacks it")
    done = configure(
        tmp_path, component("one", lines, backend="cuda", source="one.cu"), {"one.cu": ANSWER}, backend="cuda"
    )
    assert done.returncode != 0
    assert "the kernel is linked to CUDA::nvjpeg, and the toolkit found has no such library" in rendered.words(
        done.output
    )


# --- single sources, and sources of two components ---

SUM = """#include <cstdint>
int64_t first();
int64_t second();
int64_t answer() { return first() + second(); }
"""
SHARED = """#include <cstdint>
#ifndef BIG
#define BIG 0
#endif
namespace { int64_t local() { return N + BIG; } }
int64_t NAME() { return local(); }
"""


def commands(tmp_path):
    """Return the compile commands of each file, by the name of the component whose object is made, or `_small_cpu`."""
    entries = json.loads((tmp_path / "build/compile_commands.json").read_text(encoding="utf-8"))
    return {(Path(entry["file"]).name, _target(entry["output"])): entry["command"] for entry in entries}


def _target(output):
    (folder,) = [part for part in Path(output).parts if part.endswith(".dir")]
    return folder.removesuffix(".dir").rpartition(".")[2]


@pytest.mark.slow
def test_a_source_of_two_components_is_compiled_with_the_settings_of_each(tmp_path):
    components = (
        component("one")
        + component(
            "a",
            'defines = { NAME = \'first\', N = 40 }\ncxx-flags = ["-O1"]\nfile-flags = { "*" = ["-fno-inline"] }',
            source="shared.cpp",
        )
        + component(
            "b", "defines = { NAME = 'second', N = 2, BIG = false }\ncxx-flags = [\"-O3\"]", source="shared.cpp"
        )
    )
    library = built(tmp_path, components, {"one.cpp": SUM, "shared.cpp": SHARED})
    found = commands(tmp_path)
    first, second = found["shared.cpp", "a"], found["shared.cpp", "b"]
    assert {"-DNAME=first", "-DN=40", "-O1", "-fno-inline"} <= set(first.split())
    assert {"-DNAME=second", "-DN=2", "-O3"} <= set(second.split())
    assert not {"-DNAME=second", "-fno-inline"} & set(second.split()) - {"-DNAME=second"}
    assert seed(first) != seed(second)
    # All else is as in the kernel itself.
    plain = found["one.cpp", "_small_cpu"]
    shared = {"-std=", "-f", "-D", "-I", "-isystem"}
    own = {"-DNAME=first", "-DN=40", "-fno-inline", f"-frandom-seed={seed(first)}", "-D_small_cpu_EXPORTS"}
    assert options(first, shared) - own == options(plain, shared) - {
        f"-frandom-seed={seed(plain)}",
        "-D_small_cpu_EXPORTS",
    }
    assert library.stat().st_size > 0


def seed(command):
    (found,) = [word.partition("=")[2] for word in command.split() if word.startswith("-frandom-seed=")]
    return found


def options(command, prefixes):
    return {word for word in command.split() if word.startswith(tuple(prefixes))}


def test_flags_of_a_file_come_last_and_reach_no_other(tmp_path):
    lines = 'cxx-flags = ["-O3"]\nfile-flags = { "two*" = ["-O1"] }'
    files = {"one.cpp": ANSWER, "two.cpp": "int two() { return 2; }\n"}
    components = component("one", lines).replace('"one.cpp"', '"one.cpp", "two.cpp"')
    done = configure(tmp_path, components, files)
    assert done.returncode == 0, done.output
    found = commands(tmp_path)
    assert found["two.cpp", "_small_cpu"].split().index("-O1") > found["two.cpp", "_small_cpu"].split().index("-O3")
    assert "-O1" not in found["one.cpp", "_small_cpu"].split()


@pytest.mark.slow
@pytest.mark.cuda
@nvcc
def test_a_cuda_source_of_two_components_becomes_two_objects(tmp_path):
    source = "#include <cstdint>\n__global__ void KERNEL() {}\nint64_t NAME() { KERNEL<<<1, 1>>>(); return 1; }\n"
    components = component("one", backend="cuda").replace("src", 'cuda-capabilities = ["9.0"]\nsrc')
    for name, capability in (("first", "8.0"), ("second", "9.0a")):
        macros = f"defines = {{ NAME = '{name}', KERNEL = 'k_{name}' }}\ncuda-capabilities = [\"{capability}\"]"
        components += component(name, macros, backend="cuda", source="shared.cu")
    built(tmp_path, components, {"one.cpp": SUM, "shared.cu": source}, backend="cuda")
    found = commands(tmp_path)
    assert "compute_80" in found["shared.cu", "first"]
    assert "compute_90a" in found["shared.cu", "second"]
    assert "compute_90a" not in found["shared.cu", "first"]


# --- conditions ---


def test_a_project_decides_by_the_torch_that_it_finds(tmp_path):
    components = component("one", "when = { torch = '>=2.0' }") + component(
        "two", "when = { torch = '<2.0' }", source="2.cpp"
    )
    done = configure(tmp_path, components, {"one.cpp": ANSWER, "2.cpp": "#error never compiled\n"})
    assert done.returncode == 0, done.output
    assert re.search(r"kernel 'two' is left out: torch [0-9.]+ is not <2\.0", rendered.words(done.output))
    assert {name for name, _ in commands(tmp_path)} >= {"one.cpp"}
    assert ("2.cpp", "_small_cpu") not in commands(tmp_path)


def test_a_project_of_which_everything_is_left_out_is_refused(tmp_path):
    done = configure(tmp_path, component("one", "when = { system = 'aarch64-windows' }"), {"one.cpp": ANSWER})
    assert done.returncode != 0
    assert "every component of this kernel is left out here" in rendered.words(done.output)
