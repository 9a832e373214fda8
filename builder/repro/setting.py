"""The circumstances of a build, the copies and the library that they need, and builds under them."""

import contextlib
import os
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import resources
from builder.errors import ToolError
from builder.hashes import sha256
from builder.kernel import git
from builder.make.reproducible import Rules
from builder.run import ask, started

_LEFT_OUT = (".git", "dist", "build", "__pycache__", ".venv")
_SECONDS = 1_000_000_007
"""A time in 2001."""


def copy_of(kernel: Path, target: Path, *, backwards: bool = False, whole: bool = False) -> Path:
    """Copy a kernel, with the times of its files and folders.

    Args:
        kernel: Its folder.
        target: Where the copy goes.
        backwards: Make the last file first, which is another order on file systems that keep it.
        whole: With what is there besides the sources, such as `.git`.
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
    """Return a kernel as Git gives it: a clone that was changed and restored, or an unpacked `archive`."""
    origin = copy_of(kernel, folder / "origin")
    git.make_copy(origin, "init", "--quiet")
    git.make_copy(origin, "add", "--all", "--force")
    git.make_copy(origin, "commit", "--quiet", "--message", "kernel")
    target = folder / "kernel"
    if archive:
        git.make_copy(origin, "archive", "--output", "../kernel.tar", "HEAD")
        with tarfile.open(folder / "kernel.tar") as packed:
            # Before 3.11.4, as in Debian 12, there is no filter: nothing of it is needed for what Git packed.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(target)  # noqa: S202
        return target
    git.make_copy(folder, "clone", "--quiet", "origin", "kernel")
    with (target / "build.toml").open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    git.make_copy(target, "checkout", "--quiet", "--", ".")
    return target


def aged(kernel: Path, *, mode: int) -> Path:
    """Give the files of a kernel other times and modes."""
    for path in sorted(kernel.rglob("*"), reverse=True):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o755 if mode else 0o400)
        os.utime(path, (_SECONDS, _SECONDS), follow_symlinks=False)
    return kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """The library that shows a build another clock, or why there is none."""

    library: Path | None = None
    why: str | None = None


def make_preload(folder: Path) -> Preload:
    """Compile the library that shows a build another clock, and folders in another order, in `folder`."""
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
"""Parts of the user's store that the stores of varied builds share: what is slow to make, and its locks."""


def link_environments(store: Path, other: Path) -> None:
    """Let a new store use what another one was filled with from the network."""
    for name in SHARED:
        (store / name).symlink_to((other / name).resolve())


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The circumstances of one build."""

    kernel: Path
    store: Path
    cwd: Path
    copied: bool = False
    """Whether the kernel is already a copy of the user's folder; a copy of it then has all of its files."""
    backwards: bool = False
    """Whether copies of the kernel are made from its last file to its first."""
    prefix: tuple[str, ...] = ()
    """Words before the command: the program that runs it."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables of the user that are set."""
    inside: Mapping[str, str] = field(default_factory=dict)
    """Variables that the compilers see."""
    umask: int | None = None
    jobs: int | None = None
    cores: int | None = None
    burners: int = 0
    """Processes that keep the machine busy meanwhile."""

    def seeing(self, **variables: str) -> "Setting":
        """Return the same with more variables of the user."""
        return replace(self, environ={**self.environ, **variables})

    def copied_to(self, target: Path) -> "Setting":
        """Return the same with a copy of the kernel in a new folder."""
        kernel = copy_of(self.kernel, target, backwards=self.backwards, whole=self.copied)
        return replace(self, kernel=kernel, copied=True)

    def run_by(self, *words: str) -> "Setting":
        """Return the same, run by another command."""
        return replace(self, prefix=(*words, *self.prefix))


def shared_memory() -> Path | None:
    """Return the folder of another file system; None where there is none that can be written."""
    path = Path("/dev/shm")  # noqa: S108  another file system on nearly every Linux
    return path if path.is_dir() and os.access(path, os.W_OK) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of varied builds."""

    folder: Path
    """Empty, and of this run alone."""
    preload: Preload
    round: int = 1
    """The number of the varied build: variations with several values take the next one each time."""

    @property
    def elsewhere(self) -> Path:
        """A folder on another file system, removed by the code that made the workspace."""
        return (shared_memory() or self.folder) / self.folder.parent.name

    def of(self, *values: str) -> str:
        """Return the value of this round."""
        return values[(self.round - 1) % len(values)]

    def fresh(self, name: str) -> Path:
        """Make a folder that no other build has."""
        for number in range(10_000):
            path = self.folder / f"{name}-{number}"
            if not path.exists():
                path.mkdir(parents=True)
                return path
        raise AssertionError(name)


_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One wheel, and its digest."""

    wheel: Path
    sha256: str


@dataclass(slots=True, kw_only=True)
class Builder:
    """Builds one cell again and again; counts how often."""

    variant: str
    folder: Path
    environ: Mapping[str, str]
    """The user's environment, which settings change."""
    without: tuple[str, ...] = ()
    """Rules of reproducible builds that are off."""
    options: tuple[str, ...] = ()
    """More options of `builder build`."""
    count: int = field(default=0, init=False)

    def build(self, setting: Setting) -> Build:
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
        return Build(wheel=wheels[0], sha256=sha256(wheels[0].read_bytes()))

    def _command(self, setting: Setting, output: Path) -> list[str]:
        rules = Rules.without(self.without, variables=setting.inside).to_json()
        options = ["--variant", self.variant, "--store", str(setting.store), "--output", str(output), "--quiet"]
        options += ["--rebuild", "--experiment", rules, *self.options]
        options += [] if setting.jobs is None else ["--jobs", str(setting.jobs)]
        command = [*setting.prefix, sys.executable, "-m", "builder", "build", str(setting.kernel), *options]
        if setting.cores is None:
            return command
        cores = sorted(os.sched_getaffinity(0))[: setting.cores]
        return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]
