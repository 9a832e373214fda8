"""List the files that the build and the load test of a job see in their sandbox: no more than they need."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from builder import sandbox
from builder.errors import ToolError
from builder.make import header_folders, source_trees
from builder.make.job import Job
from builder.make.reproducible import SANDBOX_PATHS
from builder.run import ask
from builder.sandbox import SYSTEM, SandboxPaths, link_targets, prefixes_of
from builder.toolchain.tool import REACHES_BUILD

_ONEAPI = Path("/opt/intel/oneapi")
_ELF = b"\x7fELF"
_SHORTEST = 2
"""Parts of a path such as /opt, which no single compiler owns."""
_FOLDERS = re.compile(r"(?<![\w.-])/[^\s:=()]+")
"""Paths in the output of a compiler or the loader."""


def of_build(job: Job, *, scratch: Path, base: Path, variables: Mapping[str, str]) -> SandboxPaths:
    """Return the paths that a build sees.

    Args:
        job: The build.
        scratch: The only folder that it may write to.
        base: The path of `scratch` inside the sandbox; at the canonical path, the environment is inside it as well.
        variables: The build's variables, which may name the folder of a jobserver.
    """
    environment = job.environment
    mounts = [(scratch, base, True)]
    if environment is not None:
        mounts.append((environment, base / "env" if base == sandbox.CANONICAL else environment, False))
    # Read-only, at the same paths in every build; without a sandbox they were copied there.
    mounts += [(tree, source_trees.place(base, name), False) for name, tree in job.spec.sources.items()]
    seen = [*_python(job, job.frontend), job.site_packages, *header_folders.of_job(job).values(), *job.path]
    seen += [*_of_toolchain(job), *_of_variables(job), *([] if job.ccache is None else [job.ccache])]
    tokens = re.search(r"--jobserver-auth=fifo:(\S+)", variables.get("MAKEFLAGS", ""))
    return SandboxPaths(
        readable=tuple(path for path in seen if not (environment and path.is_relative_to(environment))),
        writable=() if tokens is None else (Path(tokens[1]),),
        mounts=tuple(mounts),
        cwd=base,
    )


def of_load_test(job: Job, *, written: bool = False) -> SandboxPaths:
    """Return the paths that a load test sees, except its package: the framework's environment, at its own path.

    `written` leaves the environment writable for bytecode, before any kernel is loaded.
    """
    if job.environment is None:
        return SandboxPaths(readable=(*_python(job, job.test_python), job.site_packages, *_of_variables(job)))
    mounts = ((job.environment, job.environment, written),)
    emulated = () if job.emulator is None else (job.emulator.program, job.emulator.root)
    seen = (*_python(job, job.test_python), *emulated, *_loader_folders(), *_named(job))
    return SandboxPaths(readable=seen, mounts=mounts)


def _python(job: Job, python: Path) -> Iterator[Path]:
    return of_python(python, environment=job.environment, home=_home(job))


def of_python(python: Path, *, environment: Path | None, home: Path | None) -> Iterator[Path]:
    """Yield the folders of an interpreter; for a virtual environment, also those of its base Python.

    `environment` is the pinned one, which is shown as a whole; None for an interpreter of this machine.
    """
    if environment is None:
        yield from prefixes_of(python, home=home)
    for line in _lines(python.parent.parent / "pyvenv.cfg"):
        name, _, value = line.partition("=")
        if name.strip() == "home":
            yield from prefixes_of(Path(value.strip()) / python.name, home=home)
    if environment is None:
        for file in sorted((python.parent.parent / "lib").glob("python3*/site-packages/*.pth")):
            yield from (Path(line.strip()) for line in _lines(file) if line.startswith("/"))
    while environment is not None and python.is_symlink() and python.is_relative_to(environment):
        python = python.parent / python.readlink()
    yield from prefixes_of(python, home=home)


def _of_toolchain(job: Job) -> Iterator[Path]:
    """Yield the folders of the compilers, and of toolkits installed on this machine and not pinned as wheels."""
    tools, home = job.toolchain, _home(job)
    yield from _loader_folders()
    if tools is None:
        return
    installed = [tool.path for tool in (tools.cuda, tools.hip) if tool is not None]
    ocloc = [] if tools.ocloc is None else [tools.ocloc]
    for program in (tools.cxx.path, tools.cc.path, *installed, *ocloc):
        yield from prefixes_of(program, home=home)
    for compiler in {tools.cxx.path, tools.cc.path}:
        yield from _reach(compiler, home=home)
    toolkits = [program.parent.parent for program in installed]
    toolkits += [_ONEAPI] if ocloc else []
    toolkits += [Path(job.environ[name]) for name in REACHES_BUILD if job.environ.get(name)]
    for toolkit in toolkits:
        if job.environment is None or not toolkit.is_relative_to(job.environment):
            yield from (toolkit, *link_targets(toolkit))


def _reach(compiler: Path, *, home: Path | None) -> Iterator[Path]:
    """Ask a compiler outside the system's folders, or a wrapper script, where its parts are."""
    with compiler.open("rb") as file:
        usual = file.read(4) == _ELF and str(compiler).startswith(SYSTEM)
    if usual:
        return
    said = answer(compiler, "-print-search-dirs") + answer(compiler, "-E", "-v", "-x", "c++", "/dev/null")
    for name in ("cc1plus", "as", "ld"):
        part = Path(answer(compiler, f"-print-prog-name={name}").strip().rpartition("\n")[2])
        if part.is_absolute() and part.is_file():
            said += f" {part.parent} {answer(Path('ldd'), part)}"
    for path in sorted({Path(text) for text in _FOLDERS.findall(said)}):
        if not any(path.resolve().is_relative_to(folder) for folder in (*SYSTEM, "/proc", "/dev")):
            yield from (path,) if path.is_dir() and len(path.parts) > _SHORTEST else prefixes_of(path, home=home)


def answer(program: Path, *arguments: str | Path) -> str:
    """Return a program's output without the user's variables; empty if it cannot be started."""
    try:
        done = ask([program, *arguments], env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"})
    except ToolError:
        return ""
    return done.stdout + done.stderr


def _loader_folders() -> Iterator[Path]:
    """Yield the folders that the system's loader is configured to search."""
    for path in (Path("/etc/ld.so.conf"), *sorted(Path("/etc/ld.so.conf.d").glob("*.conf"))):
        yield from (Path(line.strip()) for line in _lines(path) if line.strip().startswith("/"))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _of_variables(job: Job) -> Iterator[Path]:
    """Yield the paths in added variables, such as a library to preload, and the paths that the user names."""
    yield from (Path(value) for value in job.options.variables.values() if value.startswith("/"))
    yield from _named(job)


def _named(job: Job) -> Iterator[Path]:
    yield from (Path(each) for each in job.environ.get(SANDBOX_PATHS, "").split(":") if each.startswith("/"))


def _home(job: Job) -> Path | None:
    home = job.environ.get("HOME")
    return None if not home else Path(home)
