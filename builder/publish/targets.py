"""Targets of a site: a directory of this machine, or a bucket by way of rclone."""

import filecmp
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from builder import run
from builder.errors import PublishError
from builder.files import write_atomic

_ABSENT = (3, 4)
"""Exit codes of rclone: directory not found, file not found."""
_AGAIN = "run the command again: it goes on where it stopped"


class Target(Protocol):
    """A place that files are sent to."""

    def read(self, path: str) -> bytes | None:
        """Return a file of the target, or None where it has none.

        Raises:
            PublishError: the target cannot be read.
        """

    def send(self, root: Path, paths: Sequence[str], *, fixed: bool) -> None:
        """Send files of `root`; a fixed one that is there must be equal, any other is replaced.

        Raises:
            PublishError: the target refuses, or has another file of the same name.
        """


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that a web server serves."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def read(self, path: str) -> bytes | None:
        """Return a file, or None where there is none.

        Raises:
            PublishError: the file cannot be read.
        """
        target = self.root / path
        try:
            return target.read_bytes() if target.is_file() else None
        except OSError as error:
            raise PublishError(f"cannot read '{target}': {error.strerror}", help=_AGAIN) from error

    def send(self, root: Path, paths: Sequence[str], *, fixed: bool) -> None:
        """Copy files, each complete or absent.

        Raises:
            PublishError: the directory has another file of the same name, or cannot be written.
        """
        try:
            if fixed:
                self._refuse_changes(root, paths)
            for path in paths:
                if not self._same(root, path):
                    _copy(root / path, self.root / path)
        except OSError as error:
            raise PublishError(f"cannot write '{self.root}': {error.strerror}", help=_AGAIN) from error

    def _refuse_changes(self, root: Path, paths: Sequence[str]) -> None:
        changed = [path for path in paths if (self.root / path).exists() and not self._same(root, path)]
        if changed:
            raise PublishError(
                f"'{self.root}' has other files named {', '.join(changed)}",
                help="a published wheel never changes: build it with another --wheel-version",
            )

    def _same(self, root: Path, path: str) -> bool:
        target = self.root / path
        return target.is_file() and filecmp.cmp(root / path, target, shallow=False)


def is_own(root: Path, path: str) -> bool:
    """Whether `path` is a regular file below `root`, with no link on the way: what is behind one is not the site's."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        return False
    above = [root.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
    return not any(each.is_symlink() for each in above) and above[-1].is_file()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.part")
    with source.open("rb") as content, aside.open("wb") as file:
        shutil.copyfileobj(content, file)
        file.flush()
        os.fsync(file.fileno())
    aside.chmod(0o644)
    aside.replace(target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket that speaks S3; credentials come from the environment, as with every tool for it."""

    name: str
    """`bucket/prefix`."""
    endpoint: str | None = None
    """URL of the service; None is Amazon's."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"s3://{self.name}"

    def read(self, path: str) -> bytes | None:
        """Return a file, or None where there is none.

        Raises:
            PublishError: rclone failed.
        """
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "file"
            done = self._rclone("copyto", self._remote(path), target)
            if done.returncode not in (0, *_ABSENT):
                raise self._failure(done.output)
            return target.read_bytes() if target.is_file() else None

    def send(self, root: Path, paths: Sequence[str], *, fixed: bool) -> None:
        """Upload files; rclone leaves out those that are there with the same content.

        Raises:
            PublishError: rclone failed, or the bucket has another file of the same name.
        """
        with tempfile.TemporaryDirectory() as folder:
            names = Path(folder) / "names"
            write_atomic(names, "".join(f"{path}\n" for path in paths).encode())
            # --immutable: a file that is there with other content is an error, and stays.
            immutable = ("--immutable",) if fixed else ()
            done = self._rclone("copy", root, self._remote(""), "--checksum", "--files-from-raw", names, *immutable)
        if done.returncode != 0:
            raise self._failure(done.output)

    def _remote(self, path: str) -> str:
        return f":s3:{self.name.strip('/')}/{path}"

    def _rclone(self, *arguments: str | Path) -> run.Completed:
        settings = {
            "RCLONE_CONFIG": os.devnull,
            "RCLONE_S3_ENV_AUTH": "true",
            "RCLONE_S3_NO_CHECK_BUCKET": "true",
            "RCLONE_S3_PROVIDER": "AWS" if self.endpoint is None else "Other",
            "RCLONE_LOW_LEVEL_RETRIES": "3",
        }
        if self.endpoint is not None:
            settings["RCLONE_S3_ENDPOINT"] = self.endpoint
        environ = dict(self.environ)
        # rclone has its own name for a bundle of certificates, and fails where it finds Amazon's.
        bundle = environ.pop("AWS_CA_BUNDLE", None)
        if bundle:
            settings["RCLONE_CA_CERT"] = bundle
        return run.run(["rclone", *arguments], env=environ | settings)

    def _failure(self, output: str) -> PublishError:
        errors = [line for line in output.splitlines() if "ERROR" in line or "Failed" in line]
        shown = "\n  ".join((errors or output.splitlines())[-5:])
        if "immutable file modified" in output:
            return PublishError(
                f"'{self}' has other files of the same name\n  {shown}",
                help="a published wheel never changes: build it with another --wheel-version",
            )
        return PublishError(f"rclone could not publish to '{self}'\n  {shown}", help=f"check the credentials; {_AGAIN}")
