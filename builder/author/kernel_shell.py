"""Run a shell for work on a kernel, with the tools and the framework of a cell, and the kernel's wheel."""

import contextlib
import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.author import tests as kernel_tests
from builder.errors import ToolError
from builder.kernel import Kernel
from builder.make import load
from builder.make.job import Job
from builder.make.workplace import tool_variables
from builder.matrix import Cell
from builder.plan.ask import Ask
from builder.plan.planner import Planner
from builder.run import NotStartedError, foreground

VARIANT = "BUILDER_SHELL"
"""The variable with the cell's variant; a shell inside another shell can see it."""
_SIGNALLED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelShell:
    """The variables of a shell, and its framework."""

    environ: Mapping[str, str]
    framework: str
    """Such as `torch 2.13.0+cpu`."""


@contextlib.contextmanager
def opened(kernel: Kernel, cell: Cell, wheel: Path, ask: Ask, step: Callable[[str], None]) -> Iterator[KernelShell]:
    """Make the environment of a cell and unpack the wheel, and keep both until the shell ends.

    Raises:
        NotHereError: this machine lacks a tool of the cell.
        ToolError: an installed package would be imported instead of the wheel.
    """
    planner = Planner(kernel=kernel, ask=ask, step=lambda _, text: step(text), resolves=True)
    with planner.held(planner.spec(cell)) as job, tempfile.TemporaryDirectory(prefix="builder-shell-") as name:
        folder = Path(name)
        site = folder / "site"
        kernels = job.test_packages.locked
        found = kernel_tests.installed(wheel, site, python=job.test_python, environ=_tools(job), kernels=kernels)
        paths = [found["PYTHONPATH"], *map(str, job.test_packages.folders)]
        environ = {**found, "PYTHONPATH": os.pathsep.join(paths), VARIANT: cell.variant}
        libraries = () if job.environment is None else load.libraries(job, site, folder)
        if libraries:  # an installed framework finds its own libraries
            environ["LD_LIBRARY_PATH"] = _joined(libraries, environ.get("LD_LIBRARY_PATH"))
        framework = job.framework
        yield KernelShell(environ=environ, framework=f"{framework.name} {framework.version}".strip())


def _tools(job: Job) -> dict[str, str]:
    """Return the user's variables and the variables that name the tools; the tools' folders are first on PATH."""
    toolchain = job.toolchain
    root = None if toolchain is None or toolchain.cuda is None else toolchain.cuda.path.parent.parent
    folders = [job.test_python.parent, job.frontend.parent, *job.path]
    folders += [] if root is None else [root / "bin"]
    folders += [] if toolchain is None or toolchain.ocloc is None else [toolchain.ocloc.parent]
    environ = dict(job.environ) | ({} if toolchain is None else tool_variables(toolchain, cuda_root=root))
    environ["PATH"] = _joined(folders, environ.get("PATH", os.defpath))
    environ["CMAKE_PREFIX_PATH"] = _joined([job.site_packages], environ.get("CMAKE_PREFIX_PATH"))
    if job.environment is not None:
        # Packages of another Python, or of a build that is not pinned, would shadow those of the environment.
        for variable in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            environ.pop(variable, None)
        environ["PYTHONNOUSERSITE"] = "1"
    return environ


def _joined(folders: Sequence[Path], rest: str | None) -> str:
    return os.pathsep.join((*dict.fromkeys(map(str, folders)), *filter(None, [rest])))


def run(command: Sequence[str], shell: KernelShell) -> int:
    """Run a command, by default the user's shell, and return its exit code; Ctrl-C reaches only that process.

    Raises:
        ToolError: it cannot be started.
    """
    argv = list(command) or [shell.environ.get("SHELL") or "/bin/sh"]
    try:
        code = foreground(argv, env=shell.environ, owns_interrupt=True)
    except NotStartedError as error:
        raise ToolError(
            f"cannot run '{shlex.join(argv)}': {error.reason}",
            help="name a program behind '--'" if command else "set SHELL to a shell that is there",
        ) from error
    return code if code >= 0 else _SIGNALLED - code
