"""The circumstances of a build, the copies and the library for them, and builds under them."""

import contextlib
import os
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import json_text, resources
from builder.errors import ToolError
from builder.hashes import sha256
from builder.kernel import git
from builder.run import ask, started

_LEFT_OUT = (".git", "dist", "build", "__pycache__", ".venv")
_SECONDS = 1_000_000_007
"""A time in 2001."""


def copy_of(kernel: Path, target: Path, *, backwards: bool = False, whole: bool = False) -> Path:
    """Copy a kernel, with the times of its files and folders.

    Args:
        kernel: Its folder.
        target: The folder of the copy.
        backwards: Create the last file first, which changes the order on some file systems.
        whole: Also copy files that are not sources, such as `.git`.
    """
    target.mkdir(parents=True)
    for path in sorted(kernel.iterdir(), reverse=backwards):
        if path.name in _LEFT_OUT and not whole:
            continue
        if path.is_dir() and not path.is_symlink():
            copy_of(path, target / path.name, backwards=backwards, whole=whole)
        else:
            shutil.copy2(path, target / path.name, follow_symlinks=False)
    shutil.copystat(kernel, target)
    return target


def cloned(kernel: Path, folder: Path, *, archive: bool) -> Path:
    """Return a kernel as Git delivers it: a clone that was changed and restored, or an unpacked `archive`."""
    origin = copy_of(kernel, folder / "origin")
    git.make_copy(origin, "init", "--quiet")
    git.make_copy(origin, "add", "--all", "--force")
    git.make_copy(origin, "commit", "--quiet", "--message", "kernel")
    target = folder / "kernel"
    if archive:
        git.make_copy(origin, "archive", "--output", "../kernel.tar", "HEAD")
        with tarfile.open(folder / "kernel.tar") as packed:
            # Before Python 3.11.4, as in Debian 12, there is no filter; Git's own archives do not need one.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(target)  # noqa: S202
        return target
    git.make_copy(folder, "clone", "--quiet", "origin", "kernel")
    with (target / "build.toml").open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    git.make_copy(target, "checkout", "--quiet", "--", ".")
    return target


def aged(kernel: Path, *, mode: int) -> Path:
    """Change the times and modes of a kernel's files."""
    for path in sorted(kernel.rglob("*"), reverse=True):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o755 if mode else 0o400)
        os.utime(path, (_SECONDS, _SECONDS), follow_symlinks=False)
    return kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """The library that changes a build's view of the clock, or why there is none."""

    library: Path | None = None
    why: str | None = None


def make_preload(folder: Path) -> Preload:
    """Compile, in `folder`, the library that shows a build another clock and another order of folders."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        return Preload(why="it needs Linux and a C compiler")
    target = folder / "repro-preload.so"
    source = resources.DATA / "repro-preload.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(source), "-ldl", "-pthread"]
    done = ask(command)
    if done.returncode != 0:
        first = next(iter(done.stderr.splitlines()), "it fails")
        return Preload(why=f"{compiler} cannot compile what shows another clock: {first}")
    return Preload(library=target)


SHARED = ("environments", "locks", "uv")
"""Parts of the user's store that varied builds share, since they are slow to make; and their locks."""


def link_environments(store: Path, other: Path) -> None:
    """Let a new store use another store's content from the network."""
    for name in SHARED:
        (store / name).symlink_to((other / name).resolve())


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The circumstances of one build."""

    kernel: Path
    store: Path
    cwd: Path
    copied: bool = False
    """Whether the kernel is already a copy of the user's folder; a copy of it then includes all files."""
    backwards: bool = False
    """Whether copies of the kernel are made in reverse order of files."""
    prefix: tuple[str, ...] = ()
    """The words before the command: a program that runs it."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables to set for the user's processes."""
    inside: Mapping[str, str] = field(default_factory=dict)
    """Variables that the compilers see."""
    umask: int | None = None
    jobs: int | None = None
    cores: int | None = None
    burners: int = 0
    """The number of processes that keep the machine busy during the build."""

    def seeing(self, **variables: str) -> "Circumstances":
        """Return a copy with more variables of the user."""
        return replace(self, environ={**self.environ, **variables})

    def copied_to(self, target: Path) -> "Circumstances":
        """Return a copy that builds a copy of the kernel in a new folder."""
        kernel = copy_of(self.kernel, target, backwards=self.backwards, whole=self.copied)
        return replace(self, kernel=kernel, copied=True)

    def run_by(self, *words: str) -> "Circumstances":
        """Return a copy that runs the build with another command."""
        return replace(self, prefix=(*words, *self.prefix))


def shared_memory() -> Path | None:
    """Return a folder on another file system; None if there is no writable one."""
    path = Path("/dev/shm")  # noqa: S108  another file system on nearly every Linux
    return path if path.is_dir() and os.access(path, os.W_OK) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of varied builds."""

    folder: Path
    """An empty folder for this run only."""
    preload: Preload
    round: int = 1
    """The number of the varied build: variations with several values use the next value each time."""

    @property
    def elsewhere(self) -> Path:
        """A folder on another file system; the code that made the workspace removes it."""
        return (shared_memory() or self.folder) / self.folder.parent.name

    def of(self, *values: str) -> str:
        """Return the value for this round."""
        return values[(self.round - 1) % len(values)]

    def fresh(self, name: str) -> Path:
        """Make a folder that no other build uses."""
        for number in range(10_000):
            path = self.folder / f"{name}-{number}"
            if not path.exists():
                path.mkdir(parents=True)
                return path
        raise AssertionError(name)


_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltWheel:
    """One wheel, and its digest."""

    wheel: Path
    sha256: str


@dataclass(slots=True, kw_only=True)
class Builder:
    """Builds one cell repeatedly, and counts the builds."""

    variant: str
    folder: Path
    environ: Mapping[str, str]
    """The user's environment, which settings change."""
    without: tuple[str, ...] = ()
    """The rules of reproducible builds that are switched off."""
    options: tuple[str, ...] = ()
    """Additional options of `builder build`."""
    count: int = field(default=0, init=False)

    def build(self, setting: Circumstances) -> BuiltWheel:
        """Build under a setting.

        Raises:
            ToolError: the build fails.
        """
        self.count += 1
        output = self.folder / f"wheel-{self.count}"
        path = os.pathsep.join(filter(None, (str(_PACKAGE_ROOT), self.environ.get("PYTHONPATH"))))
        environ = {**self.environ, "PYTHONPATH": path, **setting.environ}
        with contextlib.ExitStack() as running:
            for _ in range(setting.burners):
                running.enter_context(started([sys.executable, "-S", "-c", "while True: pass"]))
            done = ask(self._command(setting, output), env=environ, cwd=setting.cwd, umask=setting.umask)
        wheels = sorted(output.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            said = done.stderr[done.stderr.find("error:") :] if "error:" in done.stderr else done.stderr[-2000:]
            raise ToolError(
                f"build {self.count} of {self.variant} failed\n{said.strip()}", help="build it first: builder build"
            )
        return BuiltWheel(wheel=wheels[0], sha256=sha256(wheels[0].read_bytes()))

    def _command(self, setting: Circumstances, output: Path) -> list[str]:
        experiment = json_text.line({"without": self.without, "variables": dict(setting.inside)})
        options = ["--variant", self.variant, "--store", str(setting.store), "--output", str(output), "--quiet"]
        options += ["--rebuild", "--experiment", experiment, *self.options]
        options += [] if setting.jobs is None else ["--jobs", str(setting.jobs)]
        command = [*setting.prefix, sys.executable, "-m", "builder", "build", str(setting.kernel), *options]
        if setting.cores is None:
            return command
        cores = sorted(os.sched_getaffinity(0))[: setting.cores]
        return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]
