"""Copies of a kernel's folder that must build the same: cloned, unpacked, of other times, modes and order."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

_LEFT_OUT = (".git", "dist", "build", "__pycache__", ".venv")
_SECONDS = 1_000_000_007
"""A time in 2001."""


def copy(kernel: Path, target: Path, *, backwards: bool = False, whole: bool = False) -> Path:
    """Copy a kernel, with the times of its files and folders.

    Args:
        kernel: Its folder.
        target: Where the copy goes.
        backwards: Make the last file first, which is another order on file systems that keep it.
        whole: With what is beside the sources, such as `.git`.
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
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    _git("init", "--quiet", cwd=origin)
    _git("add", "--all", "--force", cwd=origin)
    _git(*who, "commit", "--quiet", "--message", "kernel", cwd=origin)
    target = folder / "kernel"
    if archive:
        _git("archive", "--output", "../kernel.tar", "HEAD", cwd=origin)
        with tarfile.open(folder / "kernel.tar") as packed:
            # Before 3.11.4, as in Debian 12, there is no filter: nothing of it is needed for what Git packed.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(target)  # noqa: S202
        return target
    _git("clone", "--quiet", "origin", "kernel", cwd=folder)
    with (target / "build.toml").open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    _git("checkout", "--quiet", "--", ".", cwd=target)
    return target


def _git(*arguments: str, cwd: Path) -> None:
    # Neither the user's settings nor a repository around this one.
    environment = {
        "PATH": os.defpath,
        "HOME": str(cwd),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(cwd.parent),
    }
    git = shutil.which("git") or "git"
    subprocess.run([git, *arguments], cwd=cwd, env=environment, check=True, capture_output=True)


def aged(kernel: Path, *, mode: int) -> Path:
    """Give the files of a kernel other times and modes."""
    for path in sorted(kernel.rglob("*"), reverse=True):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o755 if mode else 0o400)
        os.utime(path, (_SECONDS, _SECONDS), follow_symlinks=False)
    return kernel
