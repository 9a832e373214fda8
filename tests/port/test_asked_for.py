"""What a setup.py asks for that is not where it runs: modules, files and programs; it is said what to do."""

import pytest

from builder.errors import BuilderError
from builder.port import port, record, variables
from builder.port.settings import settings
from tests.port.projects import SIMPLE, ported, recorded

SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
import {module}
setup(name="made", ext_modules={module}.extensions(CUDAExtension))
"""
MAKES = """
import pathlib

def extensions(kind):
    pathlib.Path("made.cu").write_text("")
    return [kind("made._C", ["made.cu", "csrc/binding.cpp"])]
"""


@pytest.mark.parametrize(
    "more", ["", "\nmissing_writer.not_there.x = 1\nassert False, 'no source'\n"], ids=["nothing", "an error"]
)
def test_a_module_that_may_write_sources_is_named_with_what_to_do(tmp_path, more):
    text = SETUP.format(module="missing_writer").replace("\nsetup(", f"{more}\nsetup(")
    with pytest.raises(BuilderError) as caught:
        port(recorded(tmp_path, text), tmp_path)
    assert "'missing_writer' is not there, and a stand-in answered, which writes no source" in str(caught.value)
    assert f"pip install --target {tmp_path} missing_writer" in caught.value.help
    assert "--compile-commands FILE" in caught.value.help


def test_a_module_beside_the_setup_writes_what_is_compiled(tmp_path):
    found = ported(tmp_path, SETUP.format(module="writer"), files={"writer.py": MAKES})
    assert (
        "setup.py writes made.cu: a file that is compiled has to be in the project or in [[generate]]"
        in found.remaining
    )


def test_the_search_for_a_variable_names_the_module_too(tmp_path):
    recording = recorded(tmp_path, SETUP.format(module="missing_writer"))
    options = {"home": None, "given": {}, "sandboxed": False, "seconds": record.SECONDS}
    error = variables.needs_some(recording, tmp_path, **options)
    assert "'missing_writer' is not there" in str(error)


@pytest.mark.parametrize(
    "asks",
    [
        "import importlib.util\nif importlib.util.find_spec('{module}') is None: raise ImportError('no module')\n",
        "try:\n    import {module}\nexcept ImportError:\n    raise ImportError('install it') from None\n",
    ],
    ids=["asks whether it is there", "raises an error of its own"],
)
def test_a_module_that_setup_itself_refuses_to_be_without_is_replaced(tmp_path, asks):
    found = recorded(tmp_path, asks.format(module="no_such_module") + SIMPLE)
    assert found.runs[0].failure is None
    assert found.pretended == ("no_such_module",)


def test_a_module_of_another_system_that_pythons_own_modules_look_for_is_not_replaced(tmp_path):
    found = recorded(tmp_path, "import subprocess\nraise ImportError('\\n \\nno BLAS')\n")
    assert (found.runs[0].failure, found.pretended) == ("it raised ImportError: no BLAS", ())


def test_a_file_above_the_setup_is_told_with_what_to_do(tmp_path):
    found = recorded(tmp_path, "open('../../CMakeLists.txt')\n")
    with pytest.raises(BuilderError, match=r"outside of the folder of setup\.py, which alone is copied") as caught:
        port(found, tmp_path)
    assert "move setup.py to a folder that has all that it reads" in caught.value.help


def test_a_setup_that_runs_pip_goes_on_and_it_is_told(tmp_path):
    runs = "import subprocess\nsubprocess.check_call(['pip', 'uninstall', '-y', 'scale'])\n"
    found = ported(tmp_path, runs + SIMPLE)
    assert "setup.py:2: it runs pip uninstall -y scale" in found.remaining


def test_a_comment_in_the_requirements_is_no_requirement(tmp_path):
    text = SIMPLE.replace('version="2.1"', 'version="2.1", install_requires=["# ours", "einops", "rich>=2  # new", ""]')
    found = ported(tmp_path, text)
    assert not [line for line in found.remaining if "PEP 508" in line]
    assert found.config.wheel.requires == ("rich>=2",)


def test_a_fragment_of_the_stable_abi_registers_ops(tmp_path):
    text = "STABLE_TORCH_LIBRARY_FRAGMENT(scale, m) {}\n"
    assert ported(tmp_path, SIMPLE, files={"csrc/binding.cpp": text}).config.torch.src == ("csrc/binding.cpp",)


def test_how_to_compare_is_said_where_a_variable_keeps_setup_from_naming_the_gpu(tmp_path):
    flags = "[] if os.environ.get('TORCH_CUDA_ARCH_LIST') else ['-arch=sm_%d%d' % torch.cuda.get_device_capability()]"
    text = "import os, torch\n" + SIMPLE.replace('["-O3", "--use_fast_math"]', flags)
    among = [each for each in settings() if each.cuda is not None and each.gpu is not None]
    found = ported(tmp_path, text, *among[-3:])
    assert any("--env TORCH_CUDA_ARCH_LIST=9.0" in line for line in found.remaining)
    again = ported(tmp_path, text, *among[-3:], variables={"TORCH_CUDA_ARCH_LIST": "9.0"})
    assert not any("--env TORCH_CUDA_ARCH_LIST" in line for line in again.remaining)
