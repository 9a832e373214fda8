"""Run a `setup.py` in a sandbox for each machine that it may see, and return the recordings."""

import contextlib
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import packaging

from builder import sandbox, untrusted
from builder.errors import BuilderError, NothingToDoError, ToolError
from builder.port import source_facts
from builder.port.lines import architectures_of
from builder.port.recording import Recording, Run, decode
from builder.port.settings import RESULT, SPEC, Setting, make_machine, settings
from builder.run import Limits, ask, ends_within, started
from builder.sandbox import CANONICAL, SandboxPaths, prefixes_of

_RECORDER = Path(__file__).with_name("recorder")
_START = "import sys; sys.path.insert(0, sys.argv[1]); from _recorder.script import main; main(sys.argv[2])"
_OUTPUTS = shutil.ignore_patterns(".git", ".hg", ".venv", "venv", "__pycache__", "*.egg-info", "node_modules")
_LARGEST = 1 << 30
"""The most bytes of a tree to copy."""
_MEMORY, _FILE = 4 << 30, 256 << 20
_MOST_WRITTEN = 4 << 30
"""The most bytes that a run may write."""
_BETWEEN_LOOKS = 0.5
"""Seconds between two looks at how much a run has written."""
_OWN = {"tree": "tree", "home": "home", "out": "out", "tmp": "/tmp", "shm": "/dev/shm"}  # noqa: S108
"""The folders of the scratch directory in which `setup.py` may write, each with its path in the sandbox."""
_PATIENCE = 1.0
"""Seconds to wait for the last output of an ended process."""
_OUTPUT = 16 << 10
"""The most bytes of a run's output that are kept."""
_MOST_PRETENDED = 12
_DEEPEST = 64
"""The most folders, each in the one before, in which files are looked for."""
SECONDS = 60.0
"""The longest time of a run, in seconds."""


def record(
    directory: Path,
    *,
    home: Path | None,
    variables: Mapping[str, str] | None = None,
    sandboxed: bool = True,
    seconds: float = SECONDS,
    among: tuple[Setting, ...] | None = None,
) -> Recording:
    """Run the `setup.py` of a directory for every machine, without changing the directory.

    Args:
        directory: The folder of the `setup.py`.
        home: The user's home folder, which the sandbox hides.
        variables: Environment variables for `setup.py`.
        sandboxed: Whether it runs in a sandbox.
        seconds: The longest time of a run.
        among: The machines; by default all of them.

    Raises:
        BuilderError: there is no `setup.py`, or the tree is too large to copy.
        ToolError: no sandbox can be made.
    """
    if not (directory / "setup.py").is_file():
        raise _nothing(directory)
    why = sandbox.why_unavailable() if sandboxed else None
    if why is not None:
        raise ToolError(
            f"setup.py would run without a sandbox: {why}",
            help="pass --no-sandbox to let it do what 'pip install' lets it do",
        )
    _refuse_large(directory)
    with _scratch() as scratch:
        shutil.copytree(_RECORDER, scratch / "lib/_recorder", ignore=_OUTPUTS)
        shutil.copytree(Path(packaging.__file__).parent, scratch / "lib/packaging", ignore=_OUTPUTS)
        recorder = _Recorder(
            directory=directory,
            absent=source_facts.absent(directory),
            scratch=scratch,
            inside=CANONICAL if sandboxed else scratch,
            home=home,
            variables=variables or {},
            seconds=seconds,
        )
        runs = [recorder.run(setting) for setting in (settings() if among is None else among)]
        if among is None or any(setting.is_main for setting in among):
            runs = _of_every_gpu(recorder, runs)
        return Recording(
            runs=tuple(runs),
            pretended=tuple(recorder.pretended),
            absent=recorder.absent,
            given=tuple(recorder.variables),
        )


def _of_every_gpu(recorder: "_Recorder", runs: list[Run]) -> list[Run]:
    """Return the runs; where `setup.py` names what the machine's GPUs are, those of a machine with every GPU."""
    main = [run for run in runs if run.setting.is_main and run.failure is None and run.extensions]
    if not main:
        return runs
    whole = recorder.run(main[-1].setting.with_every_gpu)
    if whole.failure is not None or architectures_of(whole) <= architectures_of(main[-1]):
        return runs
    fuller = {main[-1].setting: whole, **{run.setting: recorder.run(run.setting.with_every_gpu) for run in main[:-1]}}
    return [more if (more := fuller.get(run.setting)) and more.failure is None else run for run in runs]


def _nothing(directory: Path) -> BuilderError:
    if not directory.is_dir():
        return BuilderError(f"'{directory}' is not a folder", help="name the folder of a setup.py")
    if (directory / "CMakeLists.txt").is_file():
        remedy = "for a CMake project, pass --compile-commands FILE: the compile_commands.json of its build folder"
    else:
        remedy = "name the folder of a setup.py"
    return NothingToDoError(f"'{directory}' has no setup.py", help=remedy)


def _refuse_large(directory: Path) -> None:
    total = 0
    for folder, folders, files in os.walk(directory):
        left_out = _left_out(folder, [*folders, *files])
        folders[:] = set(folders) - left_out
        total += sum(Path(folder, name).lstat().st_size for name in set(files) - left_out)
    if total > _LARGEST:
        raise BuilderError(
            f"'{directory}' has {total >> 20} MiB, and no more than {_LARGEST >> 20} are copied for setup.py to run in",
            help="port a clean checkout, without what was built or downloaded",
        )


@dataclass(slots=True, kw_only=True)
class _Recorder:
    """The runs of one `setup.py`, which share a scratch directory and the stand-ins."""

    directory: Path
    absent: tuple[str, ...]
    """Folders of submodules that were not fetched."""
    scratch: Path
    inside: Path
    """The path at which `setup.py` sees the scratch directory; the same path without a sandbox."""
    home: Path | None
    variables: Mapping[str, str]
    seconds: float
    pretended: list[str] = field(default_factory=list)
    """Missing modules that stand-ins replace."""
    _copied: Mapping[str, tuple[int, int]] | None = field(default=None, init=False)
    """The files of the copy, if the last run left them unchanged."""

    def run(self, setting: Setting) -> Run:
        """Run once, and again with a stand-in for each missing module."""
        run = self._once(setting)
        while run.missing is not None and self._can_pretend(run.missing):
            self.pretended.append(run.missing.partition(".")[0])
            run = self._once(setting)
        return run

    def _can_pretend(self, module: str) -> bool:
        top = module.partition(".")[0]
        ours = (self.directory / top).is_dir() or (self.directory / f"{top}.py").is_file()
        known = top == "torch" or top in self.pretended or ours
        return not known and len(self.pretended) < _MOST_PRETENDED

    def _once(self, setting: Setting) -> Run:
        tree, result = self.scratch / "tree", self.scratch / RESULT
        if self._copied is None:
            _remove(tree)
            copy(self.directory, tree)
        before = self._copied or _files_of(tree)
        for name in ("home", "out", "tmp", "shm"):
            _remove(self.scratch / name)
            (self.scratch / name).mkdir()
        machine = make_machine(setting, self.scratch, self.inside, pretended=self.pretended, believed=self.absent)
        said, stopped = _follow(self._command(), {**machine, **self.variables}, self.seconds, folder=self.scratch)
        after = _files_of(tree)
        written = tuple(sorted(path for path in after if after[path] != before.get(path) and path[-1] != "/"))
        self._copied = before if after == before else None
        if stopped is not None:
            return Run(setting=setting, failure=stopped, written=written)
        content = _content_of(result)
        if content is None:
            last = "".join(f": {line[:200]}" for line in said.strip().splitlines()[-1:])
            return Run(setting=setting, failure=f"it ended its process before anything was recorded{last}")
        try:
            return decode(untrusted.json_object(self._relative(content)), setting, written)
        except untrusted.UntrustedError as error:
            return Run(setting=setting, failure=f"it asked for more than can be recorded: {error}", written=written)

    def _relative(self, content: bytes) -> bytes:
        """Return a record with paths relative to the tree, and names for the paths of stand-ins."""
        inside = str(self.inside).encode()
        for folder in (b"cuda", b"rocm", b"torch"):
            content = content.replace(inside + b"/" + folder, b"<" + folder + b">")
        return content.replace(inside + b"/tree/", b"").replace(inside + b"/tree", b".")

    def _command(self) -> list[str]:
        python = Path(sys.executable).resolve()
        argv = [str(python), "-I", "-S", "-B", "-c", _START, str(self.inside / "lib"), str(self.inside / SPEC)]
        if self.inside == self.scratch:
            return argv
        own = ((self.scratch / name, self.inside / path, True) for name, path in _OWN.items())
        mounts = ((self.scratch, self.inside, False), *own)
        readable = prefixes_of(python, home=self.home)
        return sandbox.enclose(argv, SandboxPaths(readable=readable, mounts=mounts, cwd=self.inside))


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Make a scratch directory, and remove it with all that `setup.py` left there."""
    scratch = Path(tempfile.mkdtemp(prefix="builder-port-")).resolve()
    try:
        yield scratch
    finally:
        _remove(scratch)


def _remove(folder: Path) -> None:
    """Remove a folder, also one with closed folders, or nested deeper than Python can follow."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError):
        ask(["chmod", "-R", "u+rwX", str(folder)])
        ask(["rm", "-rf", str(folder)])


def _files_of(tree: Path) -> dict[str, tuple[int, int]]:
    """Return the size and time of every file of a tree, and its folders, which end with `/`.

    Folders nested deeper than any project's are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    waiting = [(tree, 0)]
    while waiting:
        folder, depth = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path).relative_to(tree).as_posix()
                if entry.is_dir(follow_symlinks=False):
                    found[f"{path}/"] = (0, 0)
                    waiting += [(Path(entry.path), depth + 1)] * (depth < _DEEPEST)
                else:
                    facts = entry.stat(follow_symlinks=False)
                    found[path] = (facts.st_size, facts.st_mtime_ns)
    return found


def _content_of(result: Path) -> bytes | None:
    """Return what a run wrote; None if it is no file of its own, such as a link to a file that it cannot read."""
    try:
        with os.fdopen(os.open(result, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(untrusted.LARGEST_TEXT + 1)
    except OSError:
        return None


def _follow(argv: list[str], environment: Mapping[str, str], seconds: float, *, folder: Path) -> tuple[str, str | None]:
    """Run a command that writes in a folder; return the end of its output, and why it was stopped, if it was."""
    output, end = os.pipe()
    kept = bytearray()
    before = _taken(folder)
    look, filled = time.monotonic(), False
    with started(argv, env=environment, stdout=end, stderr=end) as process:
        os.close(end)
        Limits(seconds=seconds, memory=_MEMORY, file=_FILE).hold(process.pid)
        # The reader is abandoned if an escaped process still holds the other end.
        reader = threading.Thread(target=_keep_end, args=(output, kept), daemon=True)
        reader.start()

        def fills_disk() -> bool:
            nonlocal look, filled
            if time.monotonic() >= look:
                filled = _taken(folder) - before > _MOST_WRITTEN
                look = time.monotonic() + _BETWEEN_LOOKS
            return filled

        in_time = ends_within(seconds, lambda: process.poll() is not None or fills_disk())
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # processes that it left behind
    reader.join(timeout=_PATIENCE)
    why = f"it ran longer than {seconds:g} seconds" if not in_time else None
    if filled:
        why = f"it wrote more than {_MOST_WRITTEN >> 20} MiB"
    return kept.decode(errors="replace"), why


def _taken(folder: Path) -> int:
    """Return the bytes of the disk that the files of a folder take; what cannot be read counts as nothing."""
    taken = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                taken += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118  as fast as can be
    return taken


def _keep_end(output: int, kept: bytearray) -> None:
    while chunk := os.read(output, 1 << 16):
        kept += chunk
        del kept[:-_OUTPUT]
    os.close(output)


def copy(directory: Path, target: Path) -> None:
    """Copy a project without build outputs, downloads and special files.

    Raises:
        BuilderError: a file cannot be read.
    """
    try:
        shutil.copytree(directory, target, symlinks=True, ignore=_left_out)
    except OSError as error:
        first = error.args[0][0] if isinstance(error, shutil.Error) else (error.filename, None, error.strerror)
        raise BuilderError(
            f"'{first[0]}' cannot be copied: {first[2]}", help="port a clean checkout that you can read"
        ) from None


def _left_out(folder: str, names: list[str]) -> set[str]:
    found = _OUTPUTS(folder, names)
    for name in names:
        mode = os.lstat(os.path.join(folder, name)).st_mode  # noqa: PTH118  what copytree passes
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            found.add(name)
    return found
