"""What the tests of rendered projects share: small kernels, and CMake as a user runs it."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from builder.config import Backend
from builder.kernel import load
from builder.render import render
from tests.given import processes
from tests.given.files import write
from tests.given.processes import tool

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"

BINDING = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include "registration.h"
#ifdef HEADER
#include HEADER
#endif
int64_t answer();
int64_t answer_of(torch::stable::Tensor) { return answer(); }
STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("answer(Tensor x) -> int"); }
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, KEY, ops) { ops.impl("answer", TORCH_BOX(&answer_of)); }
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
LOADS = "from ._library import load\n\nload()\n"
PACKAGE = "from ._ops import add_op_namespace_prefix, ops\n"
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed beside the tests")
BOTH = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
KEYS = {"cpu": "CPU", "cuda": "CUDA", "rocm": "CUDA", "xpu": "XPU", "metal": "MPS"}


def torch_folder():
    return Path(find_spec("torch").submodule_search_locations[0])


def plain_kernel(root, components, files):
    """Write a kernel without a framework, with the function `answer`; `components` are the lines after `[ctypes]`."""
    config = """
[general]
name = "small"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[ctypes]
exports = ["answer"]
src = []
"""
    return write(root, {"build.toml": config + components, "ctypes-ext/small/__init__.py": LOADS, **files})


def small_kernel(root, components, files, *, backend="cpu"):
    """Write a stable-ABI kernel with the op `answer`; `components` are the lines after `[torch]`."""
    config = f"""
[general]
name = "small"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["{backend}"]

[torch]
src = ["torch-ext/binding.cpp"]
cxx-flags = ["-DKEY={KEYS[backend]}"]

[torch.stable-abi]
{backend} = "2.10"
{components}
"""
    everything = {
        "build.toml": config,
        "torch-ext/binding.cpp": BINDING,
        "torch-ext/small/__init__.py": PACKAGE,
        **files,
    }
    return write(root, everything)


def write_project(kernel, backend, output, **options):
    """Render a kernel and write its project."""
    project = render(load(kernel), Backend(backend), **options)
    project.write(output)
    return project


def environment(**changes):
    """Return this process's environment without what would choose a toolkit; None removes a variable."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA", "ROCM", "HIP"))}
    environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ["PATH"]))
    environ |= {name: str(value) for name, value in changes.items() if value is not None}
    return environ


def configure(source, build, *definitions, env=None, cmake=None, python=sys.executable):
    """Configure a project; the result has `output` and `returncode`."""
    command = [cmake or tool("cmake"), "-G", "Ninja", "-S", source, "-B", build, f"-DPython_EXECUTABLE={python}"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *definitions]
    build.mkdir(parents=True, exist_ok=True)
    return run(command, env=temporary(build, env))


def temporary(build, env=None):
    """Return variables by which temporary files are in a build folder: clang leaves folders of them for HIP."""
    return (environment() if env is None else env) | {"TMPDIR": str(build)}


def compile_and_install(build, prefix, *, env=None, cmake=None):
    done = run([cmake or tool("cmake"), "--build", build], env=temporary(build, env))
    assert done.returncode == 0, done.output
    installed = run([cmake or tool("cmake"), "--install", build, "--prefix", prefix], env=env)
    assert installed.returncode == 0, installed.output
    return done


def run(command, *, env=None, cwd=None):
    """Run a command without what would choose a toolkit; the result has the `output`, with all errors."""
    env = environment() if env is None else env
    done = processes.run(*command, env=env, cwd=cwd, check=None, capture_output=False, **BOTH)
    done.output = done.stdout
    return done


def words(text):
    """Return a text with CMake's line breaks and indents as single spaces."""
    return " ".join(text.split())


def commands(build):
    """Return file name -> compile command, of a configured project."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return {Path(entry["file"]).name: entry["command"] for entry in entries}


def registered(package_folder, module, key, *, env=None):
    """Import an installed package in a fresh process; return the ops it registers under a dispatch key."""
    script = f"""
import torch, {module}
from {module}._ops import add_op_namespace_prefix as prefix
names = torch._C._dispatch_get_registrations_for_dispatch_key("{key}")
print(sorted(name.partition("::")[2] for name in names if name.startswith(prefix(""))))
"""
    environ = environment(PYTHONPATH=package_folder) if env is None else {**env, "PYTHONPATH": str(package_folder)}
    done = run([sys.executable, "-c", script], env=environ, cwd=package_folder)
    assert done.returncode == 0, done.output
    return done.output.strip().splitlines()[-1]
