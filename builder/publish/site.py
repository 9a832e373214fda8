"""Publish a package index to a directory on this machine, or to a bucket with rclone.

Wheels go first, pages after them, the manifest last.
"""

import filecmp
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from builder import run
from builder.errors import NothingToDoError, PublishError
from builder.files import write_atomic
from builder.hashes import sha256_of
from builder.make import wheel_record as record
from builder.publish.index.contents import MANIFEST
from builder.publish.index.simple import FILES
from builder.wheel import kernel_wheel

_ABSENT = (3, 4)
"""Exit codes of rclone: directory not found, file not found."""
_CHANGED = "a published wheel never changes: build it with another --wheel-version"
_AGAIN = "run the command again: it goes on where it stopped"


class Target(Protocol):
    """A place to send files to."""

    def read(self, path: str) -> bytes | None:
        """Return a file of the target; None if it is missing.

        Raises:
            PublishError: the target cannot be read.
        """

    def send(self, root: Path, paths: Sequence[str], *, fixed: bool) -> None:
        """Send files of `root`; an existing `fixed` file must be equal, any other is replaced.

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
        """Return a file; None if it is missing.

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
            differing = [path for path in paths if not self._same(root, path)]
            changed = [path for path in differing if fixed and (self.root / path).exists()]
            if changed:
                raise PublishError(
                    f"'{self.root}' has other files named {', '.join(changed)}",
                    help=_CHANGED,
                )
            for path in differing:
                _copy(root / path, self.root / path)
        except OSError as error:
            raise PublishError(f"cannot write '{self.root}': {error.strerror}", help=_AGAIN) from error

    def _same(self, root: Path, path: str) -> bool:
        target = self.root / path
        return target.is_file() and filecmp.cmp(root / path, target, shallow=False)


def is_own(root: Path, path: str) -> bool:
    """Whether `path` is a regular file below `root` without links on the way: their targets are not the site's."""
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
    """A bucket with the S3 protocol; credentials come from the environment, as for all such tools."""

    name: str
    """`bucket/prefix`."""
    endpoint: str | None = None
    """URL of the service; None is Amazon's."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"s3://{self.name}"

    def read(self, path: str) -> bytes | None:
        """Return a file; None if it is missing.

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
        """Upload files; rclone skips files that are already there with the same content.

        Raises:
            PublishError: rclone failed, or the bucket has another file of the same name.
        """
        with tempfile.TemporaryDirectory() as folder:
            names = Path(folder) / "names"
            write_atomic(names, "".join(f"{path}\n" for path in paths).encode())
            # --immutable: a file with other content is an error, and stays unchanged.
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
        # rclone has a separate setting for a certificate bundle, and fails with Amazon's setting.
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
                help=_CHANGED,
            )
        return PublishError(f"rclone could not publish to '{self}'\n  {shown}", help=f"check the credentials; {_AGAIN}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """The files that a publication sends; until it starts, the target is only read."""

    wheels: tuple[str, ...]
    """Names of the wheels that the target does not list yet."""
    fixed: tuple[str, ...]
    """Paths of all files that never change; the target's own ones are not sent again."""
    pages: tuple[str, ...]
    unsandboxed: tuple[str, ...] = ()
    """The new wheels that were built without a sandbox."""
    obstacles: Mapping[str, str | None] = field(default_factory=dict)
    """Why each new wheel must not be published; None if it may be."""


def plan(site: Path, target: Target) -> SitePlan:
    """Compare a site with the target.

    Raises:
        NothingToDoError: `site` is not an index that `builder index` made.
        PublishError: the site is damaged, the target has wheels that the site lacks, or other ones of the same name.
    """
    manifest = site / MANIFEST
    try:
        content = manifest.read_bytes()
    except OSError as error:
        raise NothingToDoError(
            f"'{site}' is not a package index: {MANIFEST} cannot be read ({error.strerror})",
            help="make one with `builder index DIR --output SITE`",
        ) from error
    own = _listed(content, "files", name=str(manifest))
    if not own:
        raise NothingToDoError(
            f"'{site}' lists no wheels: the run of `builder index` that makes it was not finished", help="run it again"
        )
    listed = {f"{FILES}/{name}": sha256 for name, sha256 in own.items()} | _listed(content, "made", name=str(manifest))
    wrong = [path for path, sha256 in listed.items() if not is_own(site, path) or sha256_of(site / path) != sha256]
    if wrong:
        raise PublishError(
            f"'{site}' is not whole: {', '.join(sorted(wrong))} missing or changed", help="make the index again"
        )
    there = target.read(MANIFEST)
    theirs = {} if there is None else _listed(there, "files", name=f"{target}/{MANIFEST}")
    _check_against(own, theirs, target)
    files = tuple(path for path in sorted(listed) if path.startswith(f"{FILES}/"))
    records = tuple(path for path in files if path.endswith(record.SUFFIX))  # of the last build: they change
    pages = tuple(path for path in sorted(listed) if not path.startswith(f"{FILES}/"))
    wheels = tuple(sorted(own.keys() - theirs.keys()))
    return SitePlan(
        wheels=wheels,
        fixed=tuple(path for path in files if path not in records),
        pages=(*records, *pages),
        unsandboxed=tuple(name for name in wheels if record.sandboxed(site / FILES / name, sha256=own[name]) is False),
        obstacles={name: kernel_wheel.read(site / FILES / name).metadata.not_for_release for name in wheels},
    )


def publish(site: Path, target: Target, todo: SitePlan) -> None:
    """Send the files in `todo`; the next run continues an interrupted one.

    Raises:
        PublishError: the target refused, or has another file of the same name.
    """
    target.send(site, todo.fixed, fixed=True)
    target.send(site, todo.pages, fixed=False)
    target.send(site, (MANIFEST,), fixed=False)


def _listed(content: bytes, key: str, *, name: str) -> dict[str, str]:
    """Return a manifest's files and digests, by key: the wheels in `files`, and the files `made` from them."""
    try:
        files = json.loads(content)[key]
        return {str(wheel): str(sha256) for wheel, sha256 in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PublishError(f"'{name}' is not the manifest of an index: {error}", help="make the index again") from error


def _check_against(own: Mapping[str, str], theirs: Mapping[str, str], target: Target) -> None:
    changed = sorted(name for name in own.keys() & theirs.keys() if own[name] != theirs[name])
    if changed:
        raise PublishError(f"'{target}' has other files named {', '.join(changed)}", help=_CHANGED)
    lost = sorted(theirs.keys() - own.keys())
    if lost:
        raise PublishError(
            f"'{target}' has wheels that this site lacks, and would no longer list: {', '.join(lost)}",
            help="fetch them into the directory of wheels, and make the index of all",
        )
