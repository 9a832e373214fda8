"""What this machine has for building, and which rows of the matrix it can build with it."""

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from builder import current, finders, identity, interpreters, pins, sandbox, toolchain
from builder.config import Backend, Framework
from builder.errors import BuilderError
from builder.matrix import Row
from builder.store import Store

_NO_HOST = "not looked for: it needs a C++ compiler beside it"
_CONTAINERS = {
    Backend.CUDA: "CUDA 13 and newer come as pinned wheels; for 12.x set CUDA_HOME",
    Backend.ROCM: "install ROCm and set ROCM_PATH, or build in a ROCm container",
    Backend.XPU: "install oneAPI and source its setvars.sh, or build in a oneAPI container",
    Backend.METAL: "build on a Mac with Xcode",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something this machine has or lacks."""

    name: str
    found: str | None
    """What was found; None when it is missing."""
    help: str = ""
    """How to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a row of the matrix can be built here; `missing` says what it lacks."""

    row: Row
    missing: str | None
    help: str | None = None


def facts(environ: Mapping[str, str], store: Store) -> Iterator[Fact]:
    """Yield what a build may use, in the order in which it matters."""
    yield Fact(name="system", found=f"{toolchain.system()}, {platform.platform(terse=True)}")
    yield Fact(name="Python", found=f"{platform.python_version()} ({platform.python_implementation()})")
    yield from _compilers(environ)
    for name, program, remedy in (
        ("oneAPI", "icpx", _CONTAINERS[Backend.XPU]),
        ("Xcode", "xcrun", _CONTAINERS[Backend.METAL]),
        ("ccache", "ccache", "optional: 'apt-get install ccache' keeps compiled files"),
    ):
        yield _program(name, program, environ=environ, help=remedy)
    yield _torch()
    yield _nix(environ)
    mounts = sandbox.available()
    yield Fact(
        name="fixed build path",
        found=f"{sandbox.CANONICAL}, in a mount namespace" if mounts else None,
        help="the kernel allows no user namespaces: builds map their paths away instead",
    )
    yield _store(store)


def _compilers(environ: Mapping[str, str]) -> Iterator[Fact]:
    host = _tool("C++ compiler", lambda: toolchain.find(Backend.CPU, environ=environ, digest=_no_digest).cxx)
    devices = (
        ("CUDA toolkit", lambda: _required(toolchain.find(Backend.CUDA, environ=environ, digest=_no_digest).cuda)),
        ("ROCm", lambda: _required(toolchain.find(Backend.ROCM, environ=environ, digest=_no_digest).hip)),
    )
    yield host
    for name, find in devices:
        # A toolkit is found together with the compiler that it calls; without one nothing is known of it.
        yield _tool(name, find) if host.found is not None else Fact(name=name, found=None, help=_NO_HOST)


def _no_digest(path: Path) -> str:
    """Digests are for keys; here only versions are shown."""
    return path.name


def _required(tool: toolchain.Tool | None) -> toolchain.Tool:
    if tool is None:  # pragma: no cover  find() raises instead
        raise AssertionError
    return tool


def _tool(name: str, find: Callable[[], toolchain.Tool]) -> Fact:
    try:
        tool = find()
    except BuilderError as error:
        return Fact(name=name, found=None, help=error.help or error.message)
    return Fact(name=name, found=f"{tool.version}, {tool.path}")


def _program(name: str, program: str, *, environ: Mapping[str, str], help: str) -> Fact:  # noqa: A002
    found = shutil.which(program, path=environ.get("PATH"))
    return Fact(name=name, found=found, help=help)


def _torch() -> Fact:
    remedy = "not needed: a build uses pinned wheels, --no-isolation the one that is installed"
    try:
        found = current.look()
        version = None if found.torch is None else identity.torch_identity(found.torch).version
    except BuilderError as error:
        return Fact(name="torch, installed", found=None, help=error.message)
    return Fact(name="torch, installed", found=version, help=remedy)


def _nix(environ: Mapping[str, str]) -> Fact:
    remedy = "optional: 'apt-get install nix-bin', for nix build .#kernels"
    nix = shutil.which("nix", path=environ.get("PATH"))
    if nix is None:
        return Fact(name="Nix", found=None, help=remedy)
    version = _output([nix, "--version"])
    features = _output([nix, "--extra-experimental-features", "nix-command flakes", "show-config"])
    settings = dict(line.split(" = ", 1) for line in features.splitlines() if " = " in line)
    sandboxed = "sandbox on" if settings.get("sandbox") == "true" else "sandbox off"
    flakes = "flakes on" if "flakes" in _output([nix, "show-config"]) else "flakes off (pass the option)"
    return Fact(name="Nix", found=f"{version.strip()}, {sandboxed}, {flakes}")


def _output(argv: list[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _store(store: Store) -> Fact:
    folder = next(path for path in (store.root, *store.root.parents) if os.path.isdir(path))  # noqa: PTH112  a folder may be out of reach
    free = shutil.disk_usage(folder).free / 2**30
    writable = os.access(folder, os.W_OK)
    found = f"{store.root}, {free:.0f} GiB free" if writable else None
    return Fact(name="store", found=found, help=f"'{folder}' cannot be written: name another with BUILDER_STORE")


def verdicts(rows: tuple[Row, ...], environ: Mapping[str, str]) -> Iterator[Verdict]:
    """Yield for each row whether a classic torch cell of it can be built here; nothing is fetched."""
    known, where = pins.load(), finders.read(environ)
    search = functools.cache(functools.partial(interpreters.find, finders=where))
    tools: dict[tuple[Backend, str | None], BuilderError | None] = {}
    for row in rows:
        if row.system != toolchain.system():
            yield Verdict(row=row, missing=f"a machine of {row.system}")
            continue
        wanted = pins.Requirement(
            framework=Framework.TORCH, version=str(row.torch), compute=row.compute, python="", system=row.system
        )
        try:
            found = interpreters.interpreter_for(known, wanted, finders=where, search=search)
            pinned = known.environment(replace(wanted, python=found.tag))
        except BuilderError as error:
            yield Verdict(row=row, missing=error.message, help=error.help)
            continue
        # A toolkit among the pins is made when it is needed.
        toolkit = any(wheel.name == "nvidia-cuda-nvcc" for wheel in pinned.wheels)
        key = (Backend.CPU, None) if toolkit else (row.backend, row.toolkit)
        if key not in tools:
            tools[key] = _missing_tool(*key, environ=environ)
        problem = tools[key]
        yield Verdict(
            row=row,
            missing=None if problem is None else problem.message,
            help=None if problem is None else _CONTAINERS.get(row.backend, problem.help),
        )


def _missing_tool(backend: Backend, toolkit: str | None, *, environ: Mapping[str, str]) -> BuilderError | None:
    if backend is Backend.XPU and shutil.which("icpx", path=environ.get("PATH")) is None:
        return BuilderError("icpx of oneAPI is not on PATH")
    try:
        toolchain.find(backend, environ=environ, toolkit=toolkit, digest=_no_digest)
    except BuilderError as error:
        return error
    return None
