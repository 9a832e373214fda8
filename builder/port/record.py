"""Run a `setup.py` in a sandbox for each machine that it might see, and return what was recorded."""

import contextlib
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from builder import sandbox, untrusted
from builder.errors import BuilderError, NothingToDoError, ToolError
from builder.port import source_facts
from builder.port.recording import Recording, Run, decode
from builder.port.settings import RESULT, SPEC, Setting, files_of, make_machine, settings
from builder.run import Limits, ends_within, started
from builder.sandbox import CANONICAL, SandboxPaths
from builder.sandbox.paths import prefixes_of

_RECORDER = Path(__file__).with_name("recorder")
_START = "import sys; sys.path.insert(0, sys.argv[1]); from _recorder.script import main; main(sys.argv[2])"
_OUTPUTS = shutil.ignore_patterns(".git", ".hg", ".venv", "venv", "__pycache__", "*.egg-info", "node_modules")
_LARGEST = 1 << 30
"""Bytes of a tree that is copied for the runs."""
_MEMORY, _FILE = 4 << 30, 256 << 20
_PATIENCE = 1.0
"""Seconds to wait for the last output of what was ended."""
_OUTPUT = 16 << 10
"""Bytes of the output of a run that are kept."""
_MOST_PRETENDED = 12
SECONDS = 60.0
"""The most seconds of one run."""


def record(
    directory: Path,
    *,
    home: Path | None,
    variables: Mapping[str, str] | None = None,
    sandboxed: bool = True,
    seconds: float = SECONDS,
    among: tuple[Setting, ...] | None = None,
) -> Recording:
    """Run the `setup.py` of a directory for every machine; the directory itself is not written to.

    Args:
        directory: The folder of the `setup.py`.
        home: The user's own folder, which no sandbox shows.
        variables: Variables of the environment that `setup.py` is given.
        sandboxed: Whether it runs in a sandbox.
        seconds: How long each run may take.
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
    with tempfile.TemporaryDirectory(prefix="builder-port-") as scratch:
        given = _Recorder(directory, Path(scratch).resolve(), home, variables or {}, seconds, sandboxed=sandboxed)
        return given.all(settings() if among is None else among)


def _nothing(directory: Path) -> BuilderError:
    if not directory.is_dir():
        return BuilderError(f"'{directory}' is not a folder", help="name the folder of a setup.py")
    if (directory / "CMakeLists.txt").is_file():
        remedy = "for a CMake project, pass --compile-commands FILE: the compile_commands.json of its build folder"
    else:
        remedy = "name the folder of a setup.py"
    return NothingToDoError(f"'{directory}' has no setup.py", help=remedy)


def _refuse_large(directory: Path) -> None:
    total = sum(path.lstat().st_size for path in _files(directory))
    if total > _LARGEST:
        raise BuilderError(
            f"'{directory}' has {total >> 20} MiB, and no more than {_LARGEST >> 20} are copied for setup.py to run in",
            help="port a clean checkout, without what was built or downloaded",
        )


def _files(directory: Path) -> Iterator[Path]:
    """Yield the files that are copied."""
    names = [path.name for path in directory.iterdir()]
    left_out = _left_out(str(directory), names)
    for name in sorted(set(names) - left_out):
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        else:
            yield path


class _Recorder:
    """The runs of one `setup.py`, which share a scratch directory and what is pretended."""

    def __init__(
        self,
        directory: Path,
        scratch: Path,
        home: Path | None,
        variables: Mapping[str, str],
        seconds: float,
        *,
        sandboxed: bool,
    ) -> None:
        self._directory, self._scratch, self._home, self._seconds = directory, scratch, home, seconds
        self._sandboxed, self._variables = sandboxed, variables
        self._pretended: list[str] = []
        self._absent = source_facts.absent(directory)
        lib = scratch / "lib"
        shutil.copytree(_RECORDER, lib / "_recorder", ignore=_OUTPUTS)
        shutil.copytree(_packaging(), lib / "packaging", ignore=_OUTPUTS)
        self._fresh = False

    def all(self, among: tuple[Setting, ...]) -> Recording:
        runs = tuple(self._run(setting) for setting in among)
        return Recording(runs=runs, pretended=tuple(self._pretended), absent=self._absent, given=tuple(self._variables))

    def _run(self, setting: Setting) -> Run:
        """Run once, and again with a stand-in for each module that is not here."""
        run = self._once(setting)
        while run.missing is not None and self._can_pretend(run.missing):
            self._pretended.append(run.missing.partition(".")[0])
            run = self._once(setting)
        return run

    def _can_pretend(self, module: str) -> bool:
        top = module.partition(".")[0]
        ours = (self._directory / top).is_dir() or (self._directory / f"{top}.py").is_file()
        known = top == "torch" or top in self._pretended or ours
        return not known and len(self._pretended) < _MOST_PRETENDED

    def _once(self, setting: Setting) -> Run:
        tree = self._scratch / "tree"
        if not self._fresh:
            shutil.rmtree(tree, ignore_errors=True)
            copy(self._directory, tree)
            self._before = files_of(tree)
        inside = CANONICAL if self._sandboxed else self._scratch
        environment = make_machine(setting, self._scratch, inside, pretended=self._pretended, believed=self._absent)
        said, late = self._start(inside, {**environment, **self._variables})
        after = files_of(tree)
        written = tuple(sorted(path for path in after if after[path] != self._before.get(path)))
        self._fresh = after == self._before
        if late:
            return Run(setting=setting, failure=f"it ran longer than {self._seconds:g} seconds", written=written)
        return self._result(setting, said, written)

    def _result(self, setting: Setting, said: str, written: tuple[str, ...]) -> Run:
        path = self._scratch / RESULT
        try:
            found = untrusted.json_object(self._relative(path.read_bytes())) if path.is_file() else None
        except untrusted.UntrustedError as error:
            return Run(setting=setting, failure=f"it asked for more than can be recorded: {error}", written=written)
        if found is None:
            lines = said.strip().splitlines()
            last = f": {lines[-1][:200]}" if lines else ""
            return Run(setting=setting, failure=f"it ended its process before anything was recorded{last}")
        return decode(found, setting, written)

    def _relative(self, content: bytes) -> bytes:
        """Return a record with paths of the tree relative to it, and the paths of stand-ins by their names."""
        inside = str(CANONICAL if self._sandboxed else self._scratch).encode()
        for folder in (b"cuda", b"rocm", b"torch"):
            content = content.replace(inside + b"/" + folder, b"<" + folder + b">")
        return content.replace(inside + b"/tree/", b"").replace(inside + b"/tree", b".")

    def _start(self, inside: Path, environment: Mapping[str, str]) -> tuple[str, bool]:
        """Start the recorder, and return the end of what it wrote and whether it was ended for its time."""
        (self._scratch / RESULT).unlink(missing_ok=True)
        python = Path(sys.executable).resolve()
        argv = [str(python), "-I", "-S", "-B", "-c", _START, str(inside / "lib"), str(inside / SPEC)]
        if self._sandboxed:
            shown = SandboxPaths(
                readable=prefixes_of(python, home=self._home), mounts=((self._scratch, inside, True),), cwd=inside
            )
            argv = sandbox.enclose(argv, shown)
        return _follow(argv, environment, self._seconds)


def _follow(argv: list[str], environment: Mapping[str, str], seconds: float) -> tuple[str, bool]:
    """Run a command, keep the end of its output, and end it after some time, with what it started."""
    output, end = os.pipe()
    kept = bytearray()
    with started(argv, env=environment, stdout=end, stderr=end) as process:
        os.close(end)
        Limits(seconds=seconds, memory=_MEMORY, file=_FILE).hold(process.pid)
        # It is left behind where something that got away still holds the other end.
        reader = threading.Thread(target=_keep_end, args=(output, kept), daemon=True)
        reader.start()
        in_time = ends_within(seconds, lambda: process.poll() is not None)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # what it left behind
    reader.join(timeout=_PATIENCE)
    return kept.decode(errors="replace") if in_time else "", not in_time


def _keep_end(output: int, kept: bytearray) -> None:
    while chunk := os.read(output, 1 << 16):
        kept += chunk
        del kept[:-_OUTPUT]
    os.close(output)


def copy(directory: Path, target: Path) -> None:
    """Copy a project without what was built, downloaded or is no file.

    Raises:
        BuilderError: something of it cannot be read.
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


def _packaging() -> Path:
    """Return the folder of `packaging`, which most `setup.py` import."""
    spec = find_spec("packaging")
    if spec is None or spec.origin is None:
        raise ToolError("this Python has no 'packaging'", help="install builder again")
    return Path(spec.origin).parent
