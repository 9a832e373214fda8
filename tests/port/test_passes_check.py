"""What `port` writes passes `check`, whatever the project is like."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from builder.cli import run
from builder.port import port, write
from builder.port.record import record
from tests.port import projects
from tests.port.projects import CUDA, OLD, PLAIN, ROCM

BINDINGS = {
    "ops": '#include <torch/library.h>\nTORCH_LIBRARY(scale, ops) { ops.def("scale(Tensor x) -> Tensor"); }\n',
    "module": "#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n",
    "none": "void nothing() {}\n",
    "own module": "#include <Python.h>\nPyMODINIT_FUNC PyInit_own(void) { return 0; }\nTORCH_LIBRARY(own, m) {}\n",
}
FLAGS = st.sampled_from(
    [
        "-O2",
        "-Wall",
        "-DA",
        "-DB=2",
        '-DT="t x"',
        "-UA",
        "-std=c++17",
        "-std=c++20",
        "-ffast-math",
        "-g",
        "-march=native",
    ]
)
GPU_FLAGS = st.sampled_from(
    [
        "--use_fast_math",
        "-lineinfo",
        "-DA",
        "-arch=sm_90a",
        "-gencode=arch=compute_80,code=sm_80",
        "-Xptxas=-v",
        "-arch=all",
    ]
)
NAMES = st.sampled_from(["scale", "Scale_It._C", "a.b.c", "9x", "_C", "scale-it", "été", "import", "x" * 60])
SOURCES = ("csrc/binding.cpp", "csrc/scale.cu", "csrc/more.cu", "csrc/host.cpp", "csrc/absent.cu", "csrc/plain.c")
EXTENSION = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["CUDAExtension", "CppExtension"]),
        "name": NAMES,
        "sources": st.lists(st.sampled_from(SOURCES), min_size=1, max_size=4, unique=True),
        "cxx": st.lists(FLAGS, max_size=3),
        "nvcc": st.lists(GPU_FLAGS, max_size=3),
        "include_dirs": st.lists(st.sampled_from(["csrc", ".", "absent", "/usr/include", "../x"]), max_size=2),
        "libraries": st.lists(st.sampled_from(["cublas", "cuda", "gomp", "nvrtc", "no-such"]), max_size=2),
        "macros": st.lists(st.sampled_from([("A", None), ("A", "1"), ("N", "3"), ("S", '"x"')]), max_size=2),
        "of_cuda_alone": st.booleans(),
    }
)
PROJECT = st.fixed_dictionaries(
    {
        "name": NAMES,
        "version": st.sampled_from(["1.0", "2.1.3+local", "v3", "none", "2026.1.2rc1", ""]),
        "packages": st.sampled_from([[], ["scale_it"], ["scale_it", "absent"]]),
        "requires": st.lists(
            st.sampled_from(["torch", "einops", "numpy>=1.20", "x @ git+https://h/x", "_"]), max_size=3
        ),
        "python": st.sampled_from([None, ">=3.8", ">=3.12", "no range"]),
        "license": st.sampled_from([None, "MIT", "Apache 2.0 (see LICENSE)", "BSD-3-Clause"]),
        "binding": st.sampled_from(sorted(BINDINGS)),
        "extensions": st.lists(EXTENSION, min_size=1, max_size=3),
    }
)


OF_CUDA_ALONE = {
    "packages": [],
    "requires": [],
    **dict.fromkeys(("python", "license"), None),
    "name": "scale",
    "version": "1.0",
    "binding": "module",
    "extensions": [
        {
            **{key: [] for key in ("cxx", "nvcc", "include_dirs", "libraries", "macros")},
            "kind": "CppExtension",
            "name": "scale",
            "sources": ["csrc/binding.cpp"],
            "of_cuda_alone": True,
        }
    ],
}


def text_of(project):
    lines = ["from setuptools import setup", "import torch", "from torch.utils.cpp_extension import *", "made = []"]
    for each in project["extensions"]:
        options = {
            "include_dirs": each["include_dirs"],
            "libraries": each["libraries"],
            "define_macros": each["macros"],
            "extra_compile_args": {"cxx": each["cxx"], "nvcc": each["nvcc"]},
        }
        indent = "    " if each["of_cuda_alone"] else ""
        lines += ["if torch.cuda.is_available():"] if each["of_cuda_alone"] else []
        lines.append(f"{indent}made.append({each['kind']}({each['name']!r}, {each['sources']!r}, **{options!r}))")
    said = {"name": project["name"], "version": project["version"], "packages": project["packages"]}
    said |= {
        "install_requires": project["requires"],
        "python_requires": project["python"],
        "license": project["license"],
    }
    return "\n".join([*lines, f"setup(ext_modules=made, **{said!r})", ""])


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
@given(PROJECT)
@example(OF_CUDA_ALONE)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_what_port_writes_for_a_project_passes_check(tmp_path_factory, project):
    folder = tmp_path_factory.mktemp("project")
    files = {
        "csrc/binding.cpp": BINDINGS[project["binding"]],
        "csrc/more.cu": "",
        "csrc/host.cpp": "",
        "csrc/plain.c": "",
    }
    projects.write(folder, text_of(project), files)
    found = port(record(folder, home=None, sandboxed=False, among=(OLD, CUDA, PLAIN, ROCM)), folder)
    write(found, folder, force=False)
    assert run(["check", str(folder)]) == 0, found.files["build.toml"]
