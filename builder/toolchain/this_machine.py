"""Ask this machine for its GPUs, its Python's frameworks, ccache, and whether nvcc accepts its C++ compiler."""

import contextlib
import json
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from builder import toml
from builder.config import Version
from builder.config.values import Backend
from builder.errors import NotHereError, ToolError
from builder.matrix.architectures import TargetGpus, of
from builder.resources import DATA
from builder.run import NotStartedError, ask
from builder.toolchain import find_cross, find_cxx
from builder.toolchain.tool import Search

_DRIVER = "libcuda.so.1"
_GPU_QUESTION = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
number, gpu, values = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(number)):
    sys.exit(1)
for index in range(number.value):
    driver.cuDeviceGet(ctypes.byref(gpu), index)
    for value, attribute in zip(values, (75, 76)):  # the numbers of its capability
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, gpu)
    print(f"{values[0].value}.{values[1].value}")
"""
_TOOL = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
_CAPABILITY = re.compile(r"^\s*([0-9]+\.[0-9]+)\s*$", re.ASCII | re.MULTILINE)
_PATIENCE = 30
"""Seconds for a driver to answer; a hanging driver counts as missing."""
_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_VERSION = "gfx_target_version "
_QUESTION = """
import importlib.util, json, os, sys, sysconfig
packages = sysconfig.get_path("platlib")
def where(name):
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else os.path.dirname(os.path.dirname(spec.origin))
print(json.dumps({**{name: where(name) for name in ("torch", "tvm_ffi", "pytest")}, "packages": packages}))
"""
_CCACHE = "ccache"
_STORAGE = "crsh-storage"
"""The feature that `builder` needs: storage over a socket. ccache has it since 4.13."""
_CLANG = re.compile(r"clang version (\d+)")
_GCC = re.compile(r"\) (\d+)\.\d+")


def native_gpus(backends: Iterable[Backend], environ: Mapping[str, str]) -> TargetGpus:
    """Return this machine's GPUs of the first of these backends that has any.

    Raises:
        NotHereError: no GPU can be found.
    """
    asked = tuple(backends)
    for backend in asked:
        found = cuda_gpus(environ) if backend is Backend.CUDA else rocm_gpus()
        if found:
            return of(backend, found)
    example = "gfx942" if asked == (Backend.ROCM,) else "9.0"
    raise NotHereError(
        f"no GPU for {' or '.join(backend.facts.title for backend in asked)} is found on this machine",
        help=f"name what to build for, such as --archs {example}; 'nvidia-smi' and 'rocminfo' show what drivers see",
    )


def cuda_gpus(environ: Mapping[str, str], *, driver: str = _DRIVER) -> tuple[str, ...]:
    """Return the capabilities of the NVIDIA GPUs that this user's programs see; empty without a driver."""
    # In a separate process: a broken driver can hang or crash its caller, and it holds GPU memory.
    said = _ask([sys.executable, "-I", "-S", "-c", _GPU_QUESTION, driver], environ)
    if said is None:  # the loader does not know the driver, as on NixOS
        tool = Search(environ=environ, digest=str).which(_TOOL[0])
        said = None if tool is None else _ask([str(tool), *_TOOL[1:]], environ)
    return () if said is None else tuple(dict.fromkeys(_CAPABILITY.findall(said)))


def _ask(command: list[str], environ: Mapping[str, str]) -> str | None:
    try:
        done = ask(command, env=environ, seconds=_PATIENCE)
    except ToolError:
        return None
    return done.stdout if done.returncode == 0 else None


def rocm_gpus(nodes: Path = _NODES) -> tuple[str, ...]:
    """Return the architectures of the AMD GPUs that Linux knows; this needs no ROCm tool."""
    found = []
    for properties in sorted(nodes.glob("*/properties")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            lines = properties.read_text(encoding="ascii").splitlines()
            text = next((line.removeprefix(_VERSION) for line in lines if line.startswith(_VERSION)), "0")
            number = int(text) if text.isdigit() else 0  # 90010 is gfx90a; a CPU has 0
            if number:
                found.append(f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentPython:
    """An interpreter, and the folders of its frameworks and pytest."""

    python: Path
    torch: Path | None
    tvm_ffi: Path | None
    pytest: Path | None = None
    packages: Path | None = None
    """The folder of its packages, even without a framework."""


def installed_frameworks(python: Path | None = None) -> CurrentPython:
    """Find the frameworks of an interpreter, by default the running one, without importing them.

    Raises:
        ToolError: the interpreter does not run.
    """
    chosen = Path(sys.executable) if python is None else python
    try:
        found = json.loads(ask_python(chosen, "-c", _QUESTION))
    except ValueError as error:
        raise _not_running(chosen, str(error)) from error
    paths = {name: None if path is None else Path(path) for name, path in found.items()}
    return CurrentPython(python=chosen, **paths)


def ask_python(python: Path, *arguments: str) -> str:
    """Run a Python that the user named, and return its output.

    Raises:
        ToolError: it cannot be started, or fails.
    """
    try:
        answer = ask([python, *arguments])
    except NotStartedError as error:
        absent = "there is no such file, and nothing of that name on PATH"
        raise _not_running(python, absent if error.absent else error.reason) from error
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines()
        raise _not_running(python, said[-1] if said else f"it ended with exit code {answer.returncode}")
    return answer.stdout


def _not_running(python: Path, why: str) -> ToolError:
    return ToolError(f"'{python}' is not a Python that runs: {why}", help="name another one with --python")


def find_ccache(search: Search) -> Path | None:
    """Return the ccache to use; None without one, or if its own switch CCACHE_DISABLE is set."""
    if search.environ.get("CCACHE_DISABLE"):
        return None
    installed = Path(sysconfig.get_path("scripts")) / _CCACHE
    for path in (installed, search.which(_CCACHE)):
        if path is not None and path.is_file() and _STORAGE in search.run(path, "--version"):
            return path.resolve()
    return None


@cache
def newest_for_nvcc(toolkit: str) -> Mapping[str, int]:
    """Return the newest `gcc` and `clang` that a release's nvcc accepts; empty if that was not measured."""
    entries = toml.loads((DATA / "host-compilers.toml").read_text(encoding="utf-8"))["cuda"]
    fitting = (entry for entry in entries if Version(toolkit) >= Version(entry["since"]))
    return next(({name: entry[name] for name in ("gcc", "clang")} for entry in fitting), {})


def require_for_nvcc(search: Search, toolkit: str, *, target: str | None = None) -> None:
    """Refuse a C++ compiler that is too new for nvcc.

    Args:
        search: The places to look for the compiler.
        toolkit: The release of CUDA, such as `13.0`.
        target: The target system, if it is not this machine's.

    Raises:
        NotHereError: it is too new, or missing.
    """
    compiler = find_cxx(search) if target is None else find_cross(search, target)
    said = search.first_line(compiler, "--version")
    for kind, pattern in (("clang", _CLANG), ("gcc", _GCC)):
        found = pattern.search(said)
        if found is None:
            continue
        limit = newest_for_nvcc(toolkit).get(kind)
        if limit is not None and int(found[1]) > limit:
            name = "clang++" if kind == "clang" else "g++"
            way = f"set CXX={name}-{limit} where that is installed, or " if target is None else ""
            raise NotHereError(
                f"nvcc of CUDA {toolkit} takes {name} up to {limit}, and '{compiler}' is {found[1]}",
                help=f"{way}pass --toolchain pinned",
            )
        return
