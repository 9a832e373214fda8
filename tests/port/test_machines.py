"""What differs between machines: toolkits that are refused, every GPU, bindings of one backend, variables."""

import pytest

from builder.cli import run
from builder.config import Backend
from builder.config.values import Version
from builder.port.settings import settings
from tests.port.projects import BINDING, CUDA, OLD, PLAIN, ROCM, ported, write

HEAD = """
import os, subprocess
from setuptools import setup
import torch
from torch.utils.cpp_extension import CUDA_HOME, CppExtension, CUDAExtension
"""
NVCC = HEAD + 'said = subprocess.check_output([CUDA_HOME + "/bin/nvcc", "-V"], text=True)\n'
MAIN = tuple(setting for setting in settings() if setting.is_main)
USUAL = '["csrc/binding.cpp", "csrc/scale.cu"]'


def setup(sources=USUAL, options="", kind="CUDAExtension"):
    return f'setup(name="x", packages=["scale_it"], ext_modules=[{kind}("x", {sources}, {options})])\n'


def test_toolkits_that_setup_py_refuses_are_left_out_by_a_bound(tmp_path):
    text = NVCC + 'assert "release 12" not in said, "needs CUDA 13"\n' + setup()
    found = ported(tmp_path, text, *MAIN, PLAIN)
    assert found.config.general.cuda.minver == Version("13.0")
    assert found.config.general.cuda.maxver is None
    refused = "'CUDA 12.6', 'CUDA 12.8': it raised AssertionError: needs CUDA 13"
    assert f"setup.py:7: general.cuda.minver = 13.0: setup.py refuses {refused}" in found.remaining
    assert not any(item.startswith("setup.py:7: with CUDA") for item in found.remaining)


def test_toolkits_that_are_too_new_have_a_bound_as_well(tmp_path):
    text = NVCC + 'if "release 13" in said: raise SystemExit("too new")\n' + setup()
    general = ported(tmp_path, text, *MAIN).config.general
    assert (general.cuda.minver, general.cuda.maxver) == (None, Version("12.8"))


def test_one_toolkit_that_fails_between_others_gives_no_bound(tmp_path):
    text = NVCC + 'assert "release 12.8" not in said, "no"\n' + setup()
    found = ported(tmp_path, text, *MAIN)
    assert found.config.general.cuda is None
    assert "setup.py:7: with CUDA 12.8, it raised AssertionError: no" in found.remaining


@pytest.mark.parametrize(
    ("lines", "capabilities"),
    [
        (
            """
names = (os.environ.get("TORCH_CUDA_ARCH_LIST") or "%d.%d" % torch.cuda.get_device_capability()).split(";")
arch = {"8.0": "80", "9.0": "90a", "10.0": "100a"}
flags = [f"-gencode=arch=compute_{arch[name]},code=sm_{arch[name]}" for name in names if name in arch]
""",
            ("8.0", "9.0a", "10.0a"),
        ),
        (
            """
each = [torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())]
flags = [f"-gencode=arch=compute_{a}{b}a,code=sm_{a}{b}a" for a, b in each if a == 9 or a == 12]
""",
            ("9.0a", "12.0a", "12.1a"),
        ),
        (
            """
names = (os.environ.get("TORCH_CUDA_ARCH_LIST") or "9.0").replace(".", "").split(";")
flags = [f"-gencode=arch=compute_{name},code=sm_{name}" for name in names]
""",
            None,
        ),
    ],
    ids=["by the variable", "by the devices", "all that the toolkit has"],
)
def test_a_project_that_asks_the_machine_is_written_as_for_one_with_every_gpu(tmp_path, lines, capabilities):
    config = ported(tmp_path, HEAD + lines + setup(options="extra_compile_args={'nvcc': flags}"), *MAIN).config
    (component,) = config.kernel.values()
    assert component.cuda_capabilities == capabilities


def test_a_binding_of_one_backend_alone_is_a_source_of_its_component(tmp_path):
    lines = """
if torch.cuda.is_available():
    made = CUDAExtension("x", ["csrc/bind.cu", "csrc/own_cpu.cpp", "csrc/scale.cu"])
else:
    made = CppExtension("x", ["csrc/bind.cpp", "csrc/own_cpu.cpp"])
setup(name="x", packages=["scale_it"], ext_modules=[made])
"""
    bind = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
    files = {"csrc/bind.cpp": bind, "csrc/bind.cu": bind, "csrc/own_cpu.cpp": ""}
    config = ported(tmp_path, HEAD + lines, CUDA, PLAIN, files=files).config
    assert config.torch.src == ()
    sources = {part.backend: set(part.src) for part in config.kernel.values()}
    assert sources[Backend.CPU] == {"csrc/bind.cpp", "csrc/own_cpu.cpp"}
    assert sources[Backend.CUDA] == {"csrc/bind.cu", "csrc/own_cpu.cpp", "csrc/scale.cu"}


DIFFERENT = (
    HEAD
    + """
macros = [("WITH_CUDA", None)] if torch.cuda.is_available() else []
kind = CUDAExtension if macros else CppExtension
sources = ["csrc/binding.cpp", "csrc/own.cpp"] + (["csrc/scale.cu"] if macros else [])
setup(name="x", packages=["scale_it"], ext_modules=[kind("x", sources, define_macros=macros)])
"""
)


def test_a_binding_with_macros_of_one_backend_is_compiled_by_the_component_of_each(tmp_path):
    config = ported(tmp_path, DIFFERENT, CUDA, PLAIN, files={"csrc/own.cpp": ""}).config
    assert config.torch.src == ()
    by_backend = {part.backend: part for part in config.kernel.values()}
    assert all("csrc/binding.cpp" in part.src for part in by_backend.values())
    assert by_backend[Backend.CPU].defines == {}
    assert by_backend[Backend.CUDA].defines["WITH_CUDA"] is True


def test_a_binding_with_macros_of_one_toolkit_is_compiled_by_components_with_conditions(tmp_path):
    lines = 'macros = [("NEW", None)] if "release 13" in said else []\n'
    config = ported(tmp_path, NVCC + lines + setup(options="define_macros=macros"), OLD, CUDA).config
    assert config.torch.src == ()
    assert {tuple(part.defines.get("NEW", False) for part in config.kernel.values())} == {(False, True)}


def test_code_for_the_host_alone_is_a_component_of_cuda(tmp_path):
    text = HEAD + setup('["csrc/binding.cpp"]', 'libraries=["nvrtc"], include_dirs=[f"{CUDA_HOME}/include/x"]')
    found = ported(tmp_path, text, CUDA, ROCM)
    (component,) = found.config.kernel.values()
    assert (component.backend, component.src) == (Backend.CUDA, ("csrc/binding.cpp",))
    assert found.config.general.backends == (Backend.CUDA,)
    assert "torch-ext/torch_binding.cpp" not in found.files


def test_a_library_for_the_host_is_for_cuda_where_only_machines_with_cuda_get_it(tmp_path):
    lines = 'made = [CppExtension("x", ["csrc/binding.cpp"])] if torch.cuda.is_available() else []\n'
    config = ported(tmp_path, HEAD + lines + 'setup(name="x", ext_modules=made)\n', CUDA, PLAIN).config
    assert config.general.backends == (Backend.CUDA,)


VARIABLES = (
    HEAD
    + """
made = []
for name in ("A", "B"):
    if os.environ.get("WITH_" + name) == "1" or os.environ.get("WITH_ALL") == "1":
        made.append(CUDAExtension("x." + name, ["csrc/binding.cpp", "csrc/scale.cu"]))
if os.environ.get("WITH_C") == "1":
    made.append(CUDAExtension("x.C", ["csrc/scale.cu"]))
setup(name="x", ext_modules=made)
"""
)


def test_variables_that_give_extensions_are_tried_and_the_fewest_that_give_all_are_offered(tmp_path, capsys):
    write(tmp_path, VARIABLES)
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 2
    said = capsys.readouterr().err
    assert "setup() is given no extension until a variable is set\n" in said
    assert "\n  WITH_A=1 compiles 'x.A'\n" in said
    assert "\n  WITH_ALL=1 compiles 'x.A', 'x.B'\n" in said
    assert f"builder port --env WITH_ALL=1 --env WITH_C=1 {tmp_path}" in said


def test_a_variable_that_wants_a_word_is_found_as_well(tmp_path, capsys):
    write(tmp_path, VARIABLES.replace('== "1"', '== "TRUE"'))
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 2
    assert "builder port --env WITH_ALL=TRUE --env WITH_C=TRUE" in capsys.readouterr().err


def test_where_no_variable_helps_their_names_are_said(tmp_path, capsys):
    write(tmp_path, HEAD + "os.environ.get('OTHER')\nsetup(name='x')\n")
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 2
    said = capsys.readouterr().err
    assert "setup() is given no extension, so that nothing is compiled" in said
    assert "OTHER (setup.py:6)" in said


@pytest.mark.parametrize(
    ("binding", "said"),
    [
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n", "from ._ops import module"),
        (BINDING, "from ._ops import ops"),
    ],
    ids=["a module", "ops"],
)
def test_without_a_package_there_is_a_start_for_one(tmp_path, binding, said):
    text = HEAD + f'setup(name="x-y", ext_modules=[CUDAExtension("x", {USUAL})])\n'
    found = ported(tmp_path, text, files={"csrc/binding.cpp": binding})
    assert said in found.files["torch-ext/x_y/__init__.py"]
    assert "no Python package was found: 'torch-ext/x_y/__init__.py' is a start for one" in found.remaining
