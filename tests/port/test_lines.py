"""Compile lines are what torch's BuildExtension would make, taken apart."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from builder.port import flag_keys, flags
from builder.port.flag_keys import GIVEN
from builder.port.lines import CXX, GPU, normal, of_extension
from builder.port.recording import Extension
from builder.port.settings import facts, standard, toolkits

ASK = """
import inspect, json
from torch.utils import cpp_extension as found
hip = [*found.COMMON_HIP_FLAGS, *found.COMMON_HIPCC_FLAGS]
print(json.dumps({"nvcc": found.COMMON_NVCC_FLAGS, "hip": hip, "source": inspect.getsource(found)}))
"""


@pytest.mark.parametrize(
    ("words", "capabilities"),
    [
        (["-gencode", "arch=compute_80,code=sm_80"], ("8.0",)),
        (["-gencode=arch=compute_90a,code=sm_90a"], ("9.0a",)),
        (["--generate-code=arch=compute_90,code=[sm_90,compute_90]"], ("9.0+PTX",)),
        (["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_80,code=compute_80"], ("8.0+PTX",)),
        (["-gencode", "arch=compute_100f,code=sm_100"], ("10.0f",)),
        (["-gencode", "arch=compute_100f,code=[sm_100,sm_103]"], ("10.0f", "10.0f:10.3f")),
        (["-gencode=arch=compute_80,code=[sm_80,sm_86,compute_80]"], ("8.0+PTX", "8.0:8.6")),
        (["-gencode=arch=compute_80,code=sm_86", "-gencode=arch=compute_86,code=sm_86"], ("8.6",)),
        (["-arch=sm_75"], ("7.5",)),
        (["-arch", "sm_103a"], ("10.3a",)),
        (["-gencode=arch=compute_120,code=sm_120", "-gencode=arch=compute_80,code=sm_80"], ("8.0", "12.0")),
        (["-arch=native"], ()),
    ],
)
def test_architectures_are_read_in_every_spelling(words, capabilities):
    found = flags.read([*words, "-lineinfo"])
    assert found.capabilities == capabilities
    assert found.rest == (("-lineinfo",),)


def test_the_last_word_on_a_macro_holds():
    found = flags.read(["-DA", "-D", "B=1", "-UA", "-DC=x=y", "-UB", "-DB=2"])
    assert found.macros == {"B": "2", "C": "x=y"}
    assert found.undefined == ("A",)


@pytest.mark.parametrize("word", ["-fPIC", "-O3", "--threads=4", "-t4"])
def test_what_every_build_passes_is_left_out(word):
    assert flags.read([word, "-Wall"]).rest == (("-Wall",),)


def test_a_flag_keeps_the_word_that_belongs_to_it():
    words = ["-Xcompiler", "-fPIC", "--threads", "4", "-Xcudafe", "--diag_suppress=1", "-Xcudafe", "--diag_suppress=2"]
    assert flags.read(words).rest == (("-Xcudafe", "--diag_suppress=1"), ("-Xcudafe", "--diag_suppress=2"))


def test_a_list_of_flags_is_for_both_compilers_and_torchs_own_come_first():
    extension = Extension(
        kind="CUDAExtension",
        name="x",
        at="setup.py:1",
        sources=("./a.cpp", "sub/../b.cu", "c.h"),
        cxx_flags=("-DX", "-Iinc/"),
        nvcc_flags=("-DX", "-U__CUDA_NO_HALF_OPERATORS__"),
        include_dirs=("<cuda>/include", "inc", "<torch>/include"),
    )
    lines = of_extension(extension)
    assert {path: line.language for path, line in lines.items()} == {"a.cpp": CXX, "b.cu": GPU}
    assert lines["a.cpp"].include == ("inc",)
    assert lines["a.cpp"].flags.macros == {"X": None}
    assert "__CUDA_NO_HALF_CONVERSIONS__" in lines["b.cu"].flags.macros
    assert "__CUDA_NO_HALF_OPERATORS__" not in lines["b.cu"].flags.macros


@pytest.mark.parametrize(
    ("path", "same"), [("a//b/./c", "a/b/c"), ("./", "."), ("a/../../b", "../b"), ("/x/../y", "/y"), ("a/b/../", "a")]
)
def test_paths_are_compared_in_one_spelling(path, same):
    assert normal(path) == same


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        (["1", "2", "3"], ()),
        (["1"], ("<2",)),
        (["2", "3"], (">=2",)),
        (["2"], (">=2,<3",)),
        (["1", "3"], ("<2", ">=3")),
    ],
)
def test_toolkits_become_ranges_of_versions(holds, said):
    assert flag_keys.when(holds, ["1", "2", "3"]) == said


def test_one_list_serves_toolkits_that_each_know_a_part_of_it():
    assert flag_keys.union({"12.6": ("8.0", "9.0"), "13.0": ("8.0", "9.0", "12.0")}) == ("8.0", "9.0", "12.0")


def test_no_list_serves_toolkits_of_which_only_the_newer_one_wants_a_family():
    assert flag_keys.union({"12.9": ("8.0", "10.0"), "13.0": ("8.0", "10.0f")}) is None


def test_a_toolkit_is_asked_only_for_what_it_can_compile():
    assert flag_keys.known(("8.0", "10.0f", "10.3", "12.0+PTX"), "12.6") == ("8.0",)
    assert flag_keys.known(("8.0", "10.0f", "10.3", "12.0+PTX"), "13.0") == ("8.0", "10.0f", "10.3", "12.0+PTX")


def test_neighbouring_toolkits_share_a_list_where_one_serves_them():
    wanted = {"12.9": ("9.0", "10.0"), "13.0": ("9.0", "10.0f"), "13.2": ("9.0", "10.0f", "11.0")}
    newer = ("9.0", "10.0f", "11.0")
    assert flag_keys.by_range(wanted) == {"12.9": ("9.0", "10.0"), "13.0": newer, "13.2": newer}


def test_toolkits_before_and_after_a_change_of_architectures_are_among_the_machines():
    assert {"12.8", "13.0"} <= set(toolkits())


@pytest.mark.torch
def test_the_facts_are_those_of_the_torch_that_is_installed():
    if find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install torch")
    # In a process of its own: it imports distutils, which warns.
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert facts()["nvcc"]["flags"] == said["nvcc"]
    hip = {*said["hip"]} - {"-fPIC"}
    given = {flag for flag in hip if flag.removeprefix("-D").partition("=")[0] in GIVEN}
    assert set(facts()["hip"]["flags"]) == hip - given
    assert f"-std=c++{standard()}" in said["source"]
