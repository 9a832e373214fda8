"""Pinned build environments: made once in the store by uv, used by every build that has the same pins."""

import contextlib
import csv
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.environment.fetch import LIMITS, Reach, install
from builder.environment.indexes import Finders, uv_binary
from builder.errors import ToolError
from builder.files import write_atomic
from builder.matrix.variant import dotted
from builder.pins import PinSet
from builder.run import Processes, run
from builder.store import Store
from builder.toolchain import cuda_wheels

MARKER = "pins.json"
"""Lists what is in an environment; written last, so it also says that the environment is complete."""
_FRONTEND = ("packaging", "pathspec", "scikit_build_core")
"""The packages that the Python of every build imports, in a sandbox in which it cannot keep bytecode."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment with exactly the pinned wheels in it."""

    path: Path
    python: Path
    site_packages: Path
    digest: str

    @property
    def bin(self) -> Path:
        """The folder of cmake, ninja and the other programs."""
        return self.path / "bin"

    @property
    def cuda_root(self) -> Path | None:
        """The CUDA toolkit among the wheels, if there is one."""
        return cuda_wheels.cuda_root(self.site_packages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    """The means to make an environment."""

    python: Path
    finders: Finders
    progress: Progress
    processes: Processes
    """The processes that run for it; ending them ends it."""
    reach: Reach | None
    """Which indexes are out of reach."""
    bytecode: bool
    """Whether its Python is compiled at once."""


def make(
    pinset: PinSet,
    *,
    store_root: Path,
    python: Path,
    finders: Finders,
    progress: Progress = lambda _: None,
    processes: Processes | None = None,
    reach: Reach | None = None,
    bytecode: bool = False,
) -> Environment:
    """Return the environment of `pinset`, made with the interpreter `python` when the store lacks it.

    With `bytecode` its Python is compiled at once, for processes that import it and cannot write into it. Those who
    share a `reach` ask an index that cannot be reached only once.

    Raises:
        StoppedError: the `processes` were ended while another process made it.
        ToolError: a wheel cannot be had, or is not the one that was pinned; the store is as it was.
    """
    store = Store(store_root)
    writable = store.prepare()
    found = at(pinset, store_root)
    why = _why_not(store, found, pinset)
    if why is None:
        return found
    if not writable:
        raise ToolError(
            f"cannot use the environment '{found.path}': {why}, and the store is read-only",
            help="name a store that can be written with --store or BUILDER_STORE",
        )
    found.path.parent.mkdir(exist_ok=True)
    _drop_leftovers(store, found.path.parent)
    making = _Making(
        python=python,
        finders=finders,
        progress=progress,
        processes=processes or Processes(),
        reach=reach,
        bytecode=bytecode,
    )
    with store.lock(_lock(pinset.digest), give_up=lambda: making.processes.cancelled):
        _replace(found, pinset, making)
    return found


def _why_not(store: Store, found: Environment, pinset: PinSet) -> str | None:
    """Return why an environment cannot be used: damaged, or of another user, whose programs must not be run."""
    if not os.path.lexists(found.path):
        return "it is not there"
    return store.stranger(found.path) or damage(found, pinset)


def _replace(wanted: Environment, pinset: PinSet, making: _Making) -> None:
    """Make an environment under a temporary name and rename it; the caller holds its lock."""
    if os.path.lexists(wanted.path):
        why = _why_not(Store(wanted.path.parent.parent), wanted, pinset)
        if why is None:
            return  # another process made it while this one waited
        making.progress(f"the environment {wanted.digest[:12]} is damaged ({why}): making it again")
    folder = wanted.path.parent
    aside = Path(tempfile.mkdtemp(prefix=f".{wanted.digest}-", dir=folder))
    old = aside.with_name(f"{aside.name}-old")
    try:
        # uv trusts the content of its cache: in a store of another user, each user has one.
        foreign = folder.parent.stat().st_uid != os.geteuid()
        cache = folder.parent / (f"uv-{os.geteuid()}" if foreign else "uv")
        _fill(aside, pinset, making, cache=cache)
        if _damaged_file(aside, pinset) is not None:
            making.progress("what uv has cached is damaged: fetching the wheels again")
            _fill(aside, pinset, making, cache=None)
        write_atomic(aside / MARKER, pinset.to_json().encode())
        aside.chmod(0o755)
        if os.path.lexists(wanted.path):
            wanted.path.rename(old)
        aside.rename(wanted.path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _fill(path: Path, pinset: PinSet, making: _Making, *, cache: Path | None) -> None:
    """Make an environment with the wheels of `pinset` in the directory `path`, in place of what is there."""
    for child in path.iterdir():
        shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    _create(path, making, wanted=pinset.python)
    install(
        pinset,
        into=path,
        cache=cache,
        finders=making.finders,
        progress=making.progress,
        processes=making.processes,
        reach=making.reach,
        bytecode=making.bytecode,
    )
    cuda = cuda_wheels.cuda_root(_site_packages(path, pinset.python))
    if cuda is not None:
        cuda_wheels.complete(cuda)
    folders = [str(_site_packages(path, pinset.python) / name) for name in _FRONTEND]
    found = [folder for folder in folders if os.path.isdir(folder)]  # noqa: PTH112  strings: as arguments
    if found and not making.bytecode:
        # Saves each build a tenth of a second; what fails here is compiled by each build.
        argv = (str(path / "bin" / "python"), "-m", "compileall", "-q", *found)
        run(argv, cwd=path, env=making.finders.env, processes=making.processes, limits=LIMITS)


def _drop_leftovers(store: Store, folder: Path) -> None:
    """Remove the unfinished environments of killed processes, which hold no lock."""
    for path in folder.glob(".*-*"):
        digest = path.name[1:].partition("-")[0]
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):  # another user's
            if stack.enter_context(store.lock(_lock(digest), wait=False)):
                shutil.rmtree(path, ignore_errors=True)


def _lock(digest: str) -> str:
    return f"environment-{digest}"


def _create(path: Path, making: _Making, *, wanted: str) -> None:
    """Make an empty environment that may be moved."""
    python = making.python
    options = ("--quiet", "--relocatable", "--allow-existing", "--no-project", "--no-config")
    argv = (uv_binary(), "venv", *options, "--python", python, path)
    done = run(argv, cwd=path.parent, env=making.finders.env, processes=making.processes, limits=LIMITS)
    if done.returncode != 0:
        raise ToolError(
            f"uv cannot make an environment with the Python '{python}'\n{done.output.strip()}",
            help=f"name a working Python {dotted(wanted)} with --python",
        )
    if not _site_packages(path, wanted).is_dir():
        raise ToolError(
            f"'{python}' is not the Python {dotted(wanted)} that the wheels are pinned for",
            help=f"name a Python {dotted(wanted)} with --python",
        )


def _site_packages(path: Path, python: str) -> Path:
    return path / "lib" / f"python{dotted(python)}" / "site-packages"


def at(pinset: PinSet, store_root: Path) -> Environment:
    """Return the path of the environment of a set of pins in a store, whether or not it exists."""
    path = store_root / "environments" / pinset.digest
    return Environment(
        path=path,
        python=path / "bin" / "python",
        site_packages=_site_packages(path, pinset.python),
        digest=pinset.digest,
    )


def damage(environment: Environment, pinset: PinSet) -> str | None:
    """Return what is wrong with an environment: its Python or a file is missing, or a file has another size."""
    try:
        if (environment.path / MARKER).read_text(encoding="utf-8") != pinset.to_json():
            return f"{MARKER} names other wheels"
        if not environment.python.exists():
            return f"its Python, '{environment.python.readlink()}', is gone"
    except (OSError, ValueError) as error:
        return str(error)
    return _damaged_file(environment.path, pinset)


def _damaged_file(path: Path, pinset: PinSet) -> str | None:
    """Return a file of the environment at `path` that has another size than in its wheel; None if there is none."""
    try:
        return next(_changed(path, pinset), None)
    except (OSError, ValueError) as error:
        return str(error)


def _changed(path: Path, pinset: PinSet) -> Iterator[str]:
    root = str(_site_packages(path, pinset.python))  # strings: there are 20,000 files, and paths take longer
    for wheel in pinset.wheels:
        name, version, *_ = wheel.file.split("-")
        with open(f"{root}/{name}-{version}.dist-info/RECORD", encoding="utf-8", newline="") as lines:  # noqa: PTH123
            for file, _, size in csv.reader(lines):
                found = os.stat(f"{root}/{file}").st_size  # noqa: PTH116
                if size and found != int(size):
                    yield f"'{file}' has {found} bytes and not {size}"
