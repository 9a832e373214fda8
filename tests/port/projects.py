"""Small projects with a setup.py, and their recordings."""

import textwrap

from builder.port import port
from builder.port.record import record
from builder.port.settings import Setting
from tests.given import files as given

CUDA = Setting(name="CUDA 13.0", cuda="13.0", gpu=(9, 0))
OLD = Setting(name="CUDA 12.6", cuda="12.6", gpu=(9, 0))
PLAIN = Setting(name="no GPU and no toolkit")
ROCM = Setting(name="ROCm 7.2", hip="7.2.0", gpu=(9, 0))
BINDING = '#include "scale.h"\nTORCH_LIBRARY(scale, ops) {}\n'
SIMPLE = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="Scale_It",
    version="2.1",
    packages=["scale_it"],
    ext_modules=[
        CUDAExtension(
            "scale_it._C",
            ["csrc/binding.cpp", "csrc/scale.cu"],
            include_dirs=["csrc"],
            define_macros=[("WITH_X", None), ("WIDTH", "4")],
            extra_compile_args={"cxx": ["-O3", "-Wall"], "nvcc": ["-O3", "--use_fast_math"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""


def write(folder, setup, files=None):
    """Write a project; its sources are a binding and a kernel."""
    usual = {"csrc/binding.cpp": BINDING, "csrc/scale.cu": "", "csrc/scale.h": "", "scale_it/__init__.py": ""}
    return given.write(folder, {**usual, **(files or {}), "setup.py": textwrap.dedent(setup)})


def recorded(folder, setup, *among, files=None, **options):
    """Record a project without a sandbox, which is not what is tested."""
    write(folder, setup, files)
    return record(folder, home=None, sandboxed=False, among=among or (CUDA,), **options)


def ported(folder, setup, *among, files=None, **options):
    """Record a project, and return what it becomes."""
    return port(recorded(folder, setup, *among, files=files, **options), folder)
