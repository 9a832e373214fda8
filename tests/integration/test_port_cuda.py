"""The compile lines that CMake writes among stand-ins are those that it writes with the real nvcc."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.config import Backend
from builder.kernel import load
from builder.port import port, verify, write
from builder.port.lines import lines_of, read_commands
from builder.port.settings import Setting
from builder.port.verify import canonical
from tests import needs
from tests.port.projects import SIMPLE, recorded

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.cuda,
    needs.only_with("g++"),
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]


def compared(lines):
    return {
        source: [(sorted(canonical(line)), line.flags.capabilities, line.flags.standard) for line in each]
        for source, each in lines.items()
    }


def test_the_real_nvcc_makes_no_difference(tmp_path):
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    setting = Setting(name="CUDA", cuda=re.search(r"release (\d+\.\d+)", said)[1], gpu=(9, 0))
    flags = '"--use_fast_math", "-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_90a,code=sm_90a"'
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    write(port(recorded(kernel, SIMPLE.replace('"--use_fast_math"', flags), setting), kernel), kernel, force=False)
    scratch = tmp_path / "scratch"
    stood_in, roots = verify.compile_commands(load(kernel), Backend.CUDA, setting, scratch, environ=os.environ)
    definitions = {
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "KERNEL_TORCH_DIR": scratch / "torch",
        "Python_EXECUTABLE": sys.executable,
    }
    options = [f"-D{name}={value}" for name, value in definitions.items()]
    cmake = [
        Path(sys.executable).with_name("cmake"),
        "-G",
        "Ninja",
        "-S",
        scratch / "project",
        "-B",
        scratch / "real",
        *options,
    ]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(cmake, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    real = read_commands(scratch / "real/compile_commands.json")
    roots |= {str(scratch / "real"): "<build>"}
    for command in real:
        roots |= {
            word.removesuffix("/include"): "<cuda>"
            for word in command.words
            if "cuda" in word and word.endswith("/include")
        }
    assert compared(lines_of(real, roots)) == compared(lines_of(stood_in, roots))
    assert compared(lines_of(stood_in, roots))["csrc/scale.cu"][0][1] == ("8.0", "9.0a")
