"""Load an unpacked wheel in a fresh process and look every op up under its dispatch key.

That a library imports proves nothing: one built for another torch can import and register nothing, in silence.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.config import Backend, Framework
from builder.errors import BuilderError
from builder.matrix import Cell

DISPATCH_KEYS = {
    Backend.CPU: "CPU",
    Backend.CUDA: "CUDA",
    Backend.ROCM: "CUDA",  # torch on ROCm speaks of CUDA
    Backend.METAL: "MPS",
    Backend.XPU: "XPU",
}
_TIMEOUT = 300.0
_UNDEFINED = re.compile(r"undefined symbol: ([^\s,]+)")
_OF_TORCH = re.compile(r"(aoti_)?torch_|_Z(T[VITS]|GV)?N[rVK]*(2at|3c10|5torch)")
"""Symbols that torch would define: functions of its C interface, and whatever is in its namespaces."""
_ANOTHER_TORCH = "build for that torch (`builder matrix` lists the cells), or lower the version of 'torch.stable-abi'"

# Runs in the environment of the cell, with arguments `module ops key`; torch is imported by the kernel itself.
_TORCH = """
import importlib, json, sys
module, ops, key = sys.argv[1:]
importlib.import_module(module)
import torch
names = sorted(n for n in torch._C._dispatch_get_all_op_names() if n.startswith(ops + "::"))
keys = (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
found = {n: [k for k in keys if torch._C._dispatch_has_kernel_for_dispatch_key(n, k)] for n in names}
print(json.dumps(found))
"""
_TVM_FFI = """
import importlib, json, sys
module, ops, key = sys.argv[1:]
package = importlib.import_module(module)
library = importlib.import_module(module + "._ops").ops
print(json.dumps({ops: [type(library).__name__]}))
"""
_NOARCH = """
import importlib, json, sys
module, ops, key = sys.argv[1:]
importlib.import_module(module)
print(json.dumps({ops: ["import"]}))
"""


class LoadError(BuilderError):
    """A wheel that does not load, or does not register what it should."""

    exit_code = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The ops that a wheel registered, each with the dispatch keys that have a kernel."""

    ops: Mapping[str, tuple[str, ...]]


def load(
    package: Path, *, ops: str, cell: Cell, python: Path, libraries: tuple[Path, ...] = (), bytecode: bool = False
) -> Loaded:
    """Import the module at `package` with `python` and look its ops up.

    Args:
        package: The unpacked Python package; its parent goes on the path.
        ops: The op namespace of the wheel.
        cell: What the wheel is for.
        python: Interpreter of an environment that has the cell's framework.
        libraries: Where the loader also looks, for stand-ins of a GPU's libraries.
        bytecode: Keep the bytecode of what is imported beside it: torch is half of the time, and the next test's, too.

    Raises:
        LoadError: the import failed, there is no op, or an op has no kernel for the backend.
    """
    script = _TORCH if cell.framework is Framework.TORCH else _TVM_FFI
    key = DISPATCH_KEYS.get(cell.backend, "CPU")
    argv = [str(python), "-c", _NOARCH if cell.noarch else script, package.name, ops, key]
    done = _run(argv, package, libraries, bytecode=bytecode)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        _refuse_undefined(package, error)
        raise LoadError(f"the built {package.name} does not load: {error}\n{_indented(done.stderr)}")
    found: dict[str, list[str]] = json.loads(lines[-1])
    loaded = Loaded(ops={name: tuple(keys) for name, keys in found.items()})
    if not loaded.ops:
        raise LoadError(
            f"the built {package.name} imports and registers no op in '{ops}'",
            help="register the ops with TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) in a file of torch.src",
        )
    without = sorted(name for name, keys in loaded.ops.items() if not keys)
    if len(without) == len(loaded.ops):
        raise LoadError(
            f"no op of {package.name} has a kernel for {key}: {', '.join(without)}",
            help=f"register them with TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, {key}, ops)",
        )
    return loaded


def _refuse_undefined(package: Path, error: str) -> None:
    """Say what is missing in the words of the sources, where the loader misses a function or a variable."""
    match = _UNDEFINED.search(error)
    if match is None:
        return
    symbol, of_torch = _readable(match[1]), _OF_TORCH.match(match[1]) is not None
    missing, remedy = (
        ("the torch that it was loaded with has no such thing", _ANOTHER_TORCH)
        if of_torch
        else (
            "nothing defines it",
            "list the file that defines it in a 'src' of build.toml, or compare the definition with the declaration",
        )
    )
    raise LoadError(f"the built {package.name} does not load: undefined symbol '{symbol}': {missing}", help=remedy)


def _readable(symbol: str) -> str:
    """Return a symbol as the sources write it, where binutils are there to tell."""
    tool = shutil.which("c++filt")
    if tool is None:
        return symbol
    return subprocess.run([tool, symbol], capture_output=True, text=True, check=False).stdout.strip() or symbol


def _run(
    argv: list[str], package: Path, libraries: tuple[Path, ...], *, bytecode: bool
) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.defpath,
        "PYTHONPATH": str(package.parent),
        **({} if bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}),
        "HOME": str(package.parent),
        "LC_ALL": "C.UTF-8",
    }
    if libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))
    try:
        return subprocess.run(
            argv, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=_TIMEOUT, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise LoadError(f"importing {package.name} did not end within {_TIMEOUT:.0f} s") from error


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-15:])
