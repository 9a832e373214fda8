"""Copies of a kernel's folder that must build the same: cloned, unpacked, of other times, modes and order."""

import os
import shutil
import tarfile
from pathlib import Path

from builder.kernel import git

_LEFT_OUT = (".git", "dist", "build", "__pycache__", ".venv")
_SECONDS = 1_000_000_007
"""A time in 2001."""


def copy(kernel: Path, target: Path, *, backwards: bool = False, whole: bool = False) -> Path:
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
            copy(path, target / path.name, backwards=backwards, whole=whole)
        else:
            shutil.copy2(path, target / path.name, follow_symlinks=False)
    shutil.copystat(kernel, target)
    return target


def cloned(kernel: Path, folder: Path, *, archive: bool) -> Path:
    """Return a kernel as Git gives it: a clone that was changed and restored, or an unpacked `archive`."""
    origin = copy(kernel, folder / "origin")
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
