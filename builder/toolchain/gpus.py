"""The GPUs of this machine, by the architectures that compilers know them by."""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from builder.config.values import Backend
from builder.errors import NotHereError, ToolError
from builder.matrix.quick import TargetGpus, of
from builder.run import ask
from builder.toolchain.tool import Search

_DRIVER = "libcuda.so.1"
_QUESTION = """
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
"""Seconds for a driver to answer; one that hangs counts as none."""
_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_VERSION = "gfx_target_version "


def native(backends: Iterable[Backend], environ: Mapping[str, str]) -> TargetGpus:
    """Return the GPUs of this machine, of the first of these backends that has one.

    Raises:
        NotHereError: it has none that can be asked.
    """
    asked = tuple(backends)
    for backend in asked:
        found = cuda(environ) if backend is Backend.CUDA else rocm()
        if found:
            return of(backend, found)
    example = "gfx942" if asked == (Backend.ROCM,) else "9.0"
    raise NotHereError(
        f"no GPU for {' or '.join(backend.facts.title for backend in asked)} is found on this machine",
        help=f"name what to build for, such as --archs {example}; 'nvidia-smi' and 'rocminfo' show what drivers see",
    )


def cuda(environ: Mapping[str, str], *, driver: str = _DRIVER) -> tuple[str, ...]:
    """Return the capabilities of the NVIDIA GPUs that a program of this user would see; none without a driver."""
    # In a process of its own: a broken driver can hang or crash what asks it, and keeps memory of a GPU.
    said = _ask([sys.executable, "-I", "-S", "-c", _QUESTION, driver], environ)
    if said is None:  # a driver that the loader does not know, as on NixOS
        tool = Search(environ=environ, digest=str).which(_TOOL[0])
        said = None if tool is None else _ask([str(tool), *_TOOL[1:]], environ)
    return () if said is None else tuple(dict.fromkeys(_CAPABILITY.findall(said)))


def _ask(command: list[str], environ: Mapping[str, str]) -> str | None:
    try:
        done = ask(command, env=environ, seconds=_PATIENCE)
    except ToolError:
        return None
    return done.stdout if done.returncode == 0 else None


def rocm(nodes: Path = _NODES) -> tuple[str, ...]:
    """Return the architectures of the AMD GPUs that Linux knows of; this needs no tool of ROCm."""
    found = [_gfx(node / "properties") for node in sorted(nodes.glob("*"))]
    return tuple(dict.fromkeys(filter(None, found)))


def _gfx(properties: Path) -> str | None:
    """Return the name of a node's architecture, `gfx90a` of 90010; None for a processor."""
    try:
        lines = properties.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    text = next((line.removeprefix(_VERSION) for line in lines if line.startswith(_VERSION)), "0")
    number = int(text) if text.isdigit() else 0
    return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}" if number else None
