"""Pinned build environments: uv makes each once in the store, and all builds with the same pins use it."""

import contextlib
import csv
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from builder.environment.fetch import LIMITS, Installer
from builder.environment.indexes import uv_binary
from builder.errors import ToolError
from builder.files import write_atomic
from builder.make.job import PinnedPackages
from builder.matrix.variant import dotted
from builder.pins import PinSet
from builder.run import run
from builder.store import Store
from builder.toolchain import cuda_wheels

MARKER = "pins.json"
"""The list of an environment's wheels; written last, so its existence means that the environment is complete."""
_FRONTEND = ("packaging", "pathspec", "scikit_build_core")
"""The packages that Python imports in every build, where the sandbox prevents keeping bytecode."""


def at(pins: PinSet, store_root: Path) -> PinnedPackages:
    """Return the environment of a set of pins in a store, which may not exist yet."""
    return PinnedPackages(path=store_root / "environments" / pins.digest, pins=pins)


def make(pins: PinSet, *, store_root: Path, python: Path, installer: Installer) -> PinnedPackages:
    """Return the environment of a set of pins; make it with the interpreter `python` if the store lacks it.

    Raises:
        StoppedError: the processes of `installer` were ended while another process made the environment.
        ToolError: a wheel is not available, or does not have the pinned hash; the store is unchanged.
    """
    store = Store(store_root)
    writable = store.prepare()
    found = at(pins, store_root)
    why = _why_not(store, found)
    if why is None:
        return found
    if not writable:
        raise ToolError(
            f"cannot use the environment '{found.path}': {why}, and the store is read-only",
            help="name a store that can be written with --store or BUILDER_STORE",
        )
    found.path.parent.mkdir(exist_ok=True)
    _drop_leftovers(store, found.path.parent)
    with store.lock(_lock(pins.digest), give_up=lambda: installer.processes.cancelled):
        why = _why_not(store, found)  # another process may have made it meanwhile
        if why is not None:
            if os.path.lexists(found.path):
                installer.progress(f"the environment {pins.digest[:12]} is damaged ({why}): making it again")
            _replace(found, python, installer)
    return found


def _why_not(store: Store, found: PinnedPackages) -> str | None:
    """Return why an environment cannot be used: it is damaged, or another user owns it and could run programs here."""
    if not os.path.lexists(found.path):
        return "it is not there"
    return store.stranger(found.path) or damage(found)


def _drop_leftovers(store: Store, folder: Path) -> None:
    """Remove the unfinished environments of killed processes, which hold no lock."""
    for path in folder.glob(".*-*"):
        digest = path.name[1:].partition("-")[0]
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):  # another user's
            if stack.enter_context(store.lock(_lock(digest), wait=False)):
                shutil.rmtree(path, ignore_errors=True)


def _lock(digest: str) -> str:
    return f"environment-{digest}"


def _replace(wanted: PinnedPackages, python: Path, installer: Installer) -> None:
    """Make an environment under a temporary name, then rename it; the caller holds its lock."""
    folder = wanted.path.parent
    aside = Path(tempfile.mkdtemp(prefix=f".{wanted.path.name}-", dir=folder))
    old = aside.with_name(f"{aside.name}-old")
    try:
        # uv trusts the content of its cache: in another user's store, each user has a separate cache.
        foreign = folder.parent.stat().st_uid != os.geteuid()
        cache = folder.parent / (f"uv-{os.geteuid()}" if foreign else "uv")
        made = PinnedPackages(path=aside, pins=wanted.pins)
        _fill(made, python, installer, cache=cache)
        if _damaged_file(made) is not None:
            installer.progress("what uv has cached is damaged: fetching the wheels again")
            _fill(made, python, installer, cache=None)
        write_atomic(aside / MARKER, wanted.pins.to_json().encode())
        aside.chmod(0o755)
        if os.path.lexists(wanted.path):
            wanted.path.rename(old)
        aside.rename(wanted.path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _fill(made: PinnedPackages, python: Path, installer: Installer, *, cache: Path | None) -> None:
    """Make a movable environment, in place of the content of its folder."""
    path, site_packages, wanted = made.path, made.site_packages, dotted(made.pins.python)
    for child in path.iterdir():
        shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    options = ("--quiet", "--relocatable", "--allow-existing", "--no-project", "--no-config")
    argv = (uv_binary(), "venv", *options, "--python", python, path)
    env, processes = installer.finders.env, installer.processes
    done = run(argv, cwd=path.parent, env=env, processes=processes, limits=LIMITS)
    if done.returncode != 0:
        raise ToolError(
            f"uv cannot make an environment with the Python '{python}'\n{done.output.strip()}",
            help=f"name a working Python {wanted} with --python",
        )
    if not site_packages.is_dir():
        raise ToolError(
            f"'{python}' is not the Python {wanted} that the wheels are pinned for",
            help=f"name a Python {wanted} with --python",
        )
    installer.install(made.pins, into=path, cache=cache)
    cuda = cuda_wheels.cuda_root(site_packages)
    if cuda is not None:
        cuda_wheels.complete(cuda)
    frontend = [folder for folder in (site_packages / name for name in _FRONTEND) if folder.is_dir()]
    if frontend and not installer.bytecode:
        # Saves a tenth of a second in each build; each build compiles the files that fail here.
        compiling: list[str | Path] = [made.python, "-m", "compileall", "-q", *frontend]
        run(compiling, cwd=path, env=env, processes=processes, limits=LIMITS)


def damage(environment: PinnedPackages) -> str | None:
    """Return the damage of an environment: its Python or a file is missing, or a file has a different size."""
    try:
        if (environment.path / MARKER).read_text(encoding="utf-8") != environment.pins.to_json():
            return f"{MARKER} names other wheels"
        if not environment.python.exists():
            return f"its Python, '{environment.python.readlink()}', is gone"
    except (OSError, ValueError) as error:
        return str(error)
    return _damaged_file(environment)


def _damaged_file(environment: PinnedPackages) -> str | None:
    """Return a file of an environment whose size differs from its wheel's; None if there is none."""
    try:
        return next(_changed(environment), None)
    except (OSError, ValueError) as error:
        return str(error)


def _changed(environment: PinnedPackages) -> Iterator[str]:
    root = str(environment.site_packages)  # strings, since paths are slower for 20,000 files
    for wheel in environment.pins.wheels:
        name, version, *_ = wheel.file.split("-")
        with open(f"{root}/{name}-{version}.dist-info/RECORD", encoding="utf-8", newline="") as lines:  # noqa: PTH123
            for file, _, size in csv.reader(lines):
                found = os.stat(f"{root}/{file}").st_size  # noqa: PTH116
                if size and found != int(size):
                    yield f"'{file}' has {found} bytes and not {size}"
