"""What is recorded of a setup.py, against the words that torch's own BuildExtension gives its compilers."""

import json
import os
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

from builder.port.flags import group
from builder.port.lines import Command, lines_of, of_run
from builder.port.record import record
from builder.port.settings import facts
from builder.port.verify import difference
from tests.given import files as given
from tests.integration import rendered
from tests.port.projects import CUDA, SIMPLE, write

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    rendered.needs_torch,
]
COMPILER = """#!{python}
import json, os, sys
words = sys.argv[1:]
if "-c" in words:
    with open({log!r}, "a") as file:
        file.write(json.dumps([os.getcwd(), words]) + "\\n")
if "--version" in words or "-V" in words:
    print("nvcc: NVIDIA (R) Cuda compiler driver\\nCuda compilation tools, release 13.0, V13.0.0")
    print("g++ (Debian 13.2.0) 13.2.0")
elif "-dumpfullversion" in words or "-dumpversion" in words:
    print("13.2.0")
elif "-o" in words:
    open(words[words.index("-o") + 1], "w").close()
"""
RUN = """
import os, runpy, sys, sysconfig
import torch
# Older setuptools adds the flags with which Python was compiled, whatever CFLAGS says.
sysconfig.get_config_vars()["CFLAGS"] = ""
torch.version.cuda = "13.0"
torch.cuda.is_available = lambda: True
torch.cuda._is_compiled = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda.get_arch_list = lambda: ["sm_90"]
torch.cuda.get_device_capability = lambda device=None: (9, 0)
for folder in sys.argv[1:]:
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = ["setup.py", "build_ext", "--build-temp", folder + "/built", "--build-lib", folder + "/built"]
    runpy.run_path("setup.py", run_name="__main__")
"""
GIVEN = ("-c", "-o", "-MD", "-MMD", "-MF", "-ccbin", "--compiler-options '-fPIC'")
"""Words of torch and setuptools that are about files and the compiler of the host, and one that every build has."""


def compiled_by_torch(projects, scratch):
    """Return the lines of each source of projects which torch compiles with compilers that only write words down."""
    log = scratch / "log"
    program = COMPILER.format(python=sys.executable, log=str(log))
    given.write(scratch, {"cuda/bin/nvcc": program, "g++": program, "run.py": RUN, "cuda/include/cuda.h": ""})
    for name in ("cuda/bin/nvcc", "g++"):
        (scratch / name).chmod(0o755)
    compiler = str(scratch / "g++")
    environ = {**os.environ, "CUDA_HOME": str(scratch / "cuda"), "MAX_JOBS": "1", "CFLAGS": ""}
    environ |= dict.fromkeys(("CC", "CXX", "LDSHARED"), compiler)
    environ.pop("TORCH_CUDA_ARCH_LIST", None)
    argv = [sys.executable, scratch / "run.py", *projects]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    written = [_command(*json.loads(line)) for line in log.read_text().splitlines()]
    places = {
        "<torch>": Path(find_spec("torch").origin).parent,
        "<cuda>": scratch / "cuda",
        "<python>": sysconfig.get_path("include"),
    }
    roots = {str(place): name for name, place in places.items()} | {str(Path(sys.prefix, "include")): "<python>"}
    return {
        root: lines_of([each for each in written if each.source.startswith(f"{root}/")], {**roots, str(root): ""})
        for root in projects
    }


def _command(directory, words):
    source = next(word for word in words if word.endswith((".cpp", ".cu")))
    kept = (flag for flag in group(words) if flag[0] not in GIVEN and " ".join(flag) not in GIVEN)
    own = tuple(word for flag in kept for word in flag if word != source)
    # With Ninja, torch compiles in the folder of the build, where a relative folder of headers is another one. Meant is
    # the folder of the project, which it is without Ninja, too.
    return Command(directory=directory.removesuffix("/built"), source=str(Path(directory, source)), words=own)


HEAD = """
import os
from setuptools import setup, Extension
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
import torch
here = os.path.dirname(os.path.abspath(__file__))
"""
END = 'setup(name="x", version="1", packages=[], ext_modules=made, cmdclass={"build_ext": BuildExtension})\n'
BOTH = '["csrc/binding.cpp", "csrc/scale.cu"]'
PROJECTS = {
    "usual": SIMPLE,
    "flags for both": f'made = [CUDAExtension("x", {BOTH}, extra_compile_args=["-Wall", "-DA=1"])]',
    "macros": f'made = [CUDAExtension("x", {BOTH}, define_macros=[("A", None), ("B", "2"), ("C", "\\"t\\"")])]',
    "undefined macros": f'made = [CUDAExtension("x", {BOTH}, undef_macros=["A"])]',
    "half operators": (
        f'made = [CUDAExtension("x", {BOTH}, extra_compile_args={{"cxx": [], "nvcc": '
        '["-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__", "-std=c++20"]})]'
    ),
    "architectures": (
        f'made = [CUDAExtension("x", {BOTH}, extra_compile_args={{"nvcc": '
        '["-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]"]})]'
    ),
    "folders": (
        f'made = [CUDAExtension("x", {BOTH}, include_dirs=[os.path.join(here, "csrc"), "more/./sub/.."], '
        'extra_compile_args={"nvcc": ["-I" + here + "/scale_it"]})]'
    ),
    "two words": (
        f'made = [CUDAExtension("x", {BOTH}, extra_compile_args={{"nvcc": '
        '["-Xcompiler", "-Wall", "-Xptxas", "-v", "--use_fast_math", "-lineinfo"]})]'
    ),
    "for the CPU": 'made = [CppExtension("x", ["csrc/binding.cpp"], extra_compile_args={"cxx": ["-O2", "-fopenmp"]})]',
    "two extensions": (
        'made = [CUDAExtension("x", ["csrc/binding.cpp"], define_macros=[("A", "1")]), '
        'CUDAExtension("y", ["csrc/scale.cu"], extra_compile_args={"nvcc": ["-DB"]})]'
    ),
    "changed later": (
        f'made = [CUDAExtension("x", {BOTH}, extra_compile_args={{"cxx": [], "nvcc": []}})]\n'
        'made[0].extra_compile_args["nvcc"].append("-DLATE")\nmade[0].define_macros.append(("LATER", None))'
    ),
    "by the GPU": (
        "a, b = torch.cuda.get_device_capability()\n"
        f'made = [CUDAExtension("x", {BOTH}, extra_compile_args={{"nvcc": [f"-arch=sm_{{a}}{{b}}a"]}})]'
    ),
    "by the toolkit": (
        'flags = ["-DNEW"] if int(torch.version.cuda.split(".")[0]) >= 13 else []\n'
        f'made = [CUDAExtension("x", {BOTH}, extra_compile_args={{"cxx": flags, "nvcc": flags}})]'
    ),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The projects, and the lines that torch compiles each with: torch is imported once for all of them."""
    folder = tmp_path_factory.mktemp("torch")
    roots = {}
    for number, (name, text) in enumerate(PROJECTS.items()):
        whole = text if text is SIMPLE else f"{HEAD}{text}\n{END}"
        roots[name] = write(folder / str(number), whole, {"more/sub/a.h": ""})
    lines = compiled_by_torch(list(roots.values()), folder)
    return {name: (root, lines[root]) for name, root in roots.items()}


@pytest.mark.parametrize("name", PROJECTS)
def test_what_is_recorded_is_what_torch_compiles(compiled, name):
    root, found = compiled[name]
    (run,) = record(root, home=None, sandboxed=False, among=(CUDA,)).runs
    assert run.failure is None
    recorded = {}
    for lines in of_run(run).values():
        for source, line in lines.items():
            recorded.setdefault(source, []).append(line)
    assert found.keys() == recorded.keys()
    assert [difference(source, recorded[source], found[source], CUDA) for source in recorded] == [None] * len(recorded)


def test_the_macros_that_torch_gives_nvcc_are_those_of_the_table(compiled):
    (line,) = compiled["macros"][1]["csrc/scale.cu"]
    macros = {flag.removeprefix("-D") for flag in facts()["nvcc"]["flags"] if flag.startswith("-D")}
    assert macros == {name for name in line.flags.macros if name.startswith("__CUDA_NO")}
