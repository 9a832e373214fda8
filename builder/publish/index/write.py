"""Write a site: wheels first, pages last, so that a reader never follows a link to a file that is not there."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from builder.errors import BuilderError, NothingToDoError
from builder.files import sha256_of, write_atomic
from builder.publish.index.site import FILES, MANIFEST, Page


def existing_wheels(output: Path) -> tuple[Path, ...]:
    """Return the wheels that the index in `output` has.

    Raises:
        NothingToDoError: `output` has files and is not an index that this tool made.
    """
    if not output.exists():
        return ()
    if not output.is_dir():
        raise NothingToDoError(f"'{output}' is not a directory", help="name another place with --output")
    manifest = output / MANIFEST
    if not manifest.is_file():
        if any(output.iterdir()):
            raise NothingToDoError(
                f"'{output}' has files and no {MANIFEST}, so it is not an index of this tool",
                help="name an empty or a new directory with --output",
            )
        return ()
    return tuple(output / FILES / name for name in _names(manifest))


def _names(manifest: Path) -> tuple[str, ...]:
    try:
        files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
        names = tuple(sorted(files))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NothingToDoError(
            f"'{manifest}' cannot be read: {error}", help="delete the index and make it again from the wheels"
        ) from error
    if any("/" in name or not name.endswith(".whl") for name in names):
        message = f"'{manifest}' names a file that is not a wheel"
        raise NothingToDoError(message, help="delete the index and make it again")
    return names


def write(site: Mapping[str, Page], output: Path) -> int:
    """Write every file that is not there yet, and return how many wheels were new.

    Raises:
        NothingToDoError: a wheel or what belongs to it is there with other content.
        BuilderError: `output` cannot be written.
    """
    try:
        with _lock(output):
            _refuse_changes(site, output)
            return sum(_write(page, output / path) for path, page in site.items())
    except OSError as error:
        raise BuilderError(
            f"cannot write '{output}': {error.strerror}", help="free the disk, or name another place with --output"
        ) from error


def _refuse_changes(site: Mapping[str, Page], output: Path) -> None:
    changed = sorted(path for path, page in site.items() if page.fixed and not _absent_or_same(page, output / path))
    if changed:
        raise NothingToDoError(
            f"'{output}' already has other files named {', '.join(changed)}",
            help="a published wheel never changes: build it with another --wheel-version",
        )


def _absent_or_same(page: Page, target: Path) -> bool:
    if not target.exists():
        return True
    if isinstance(page.content, bytes):
        return target.read_bytes() == page.content
    return target.samefile(page.content) or sha256_of(target) == sha256_of(page.content)


def _write(page: Page, target: Path) -> bool:
    """Write one file; whether it is a wheel that was not there."""
    if page.fixed and target.exists():
        return False
    if isinstance(page.content, bytes):
        if not target.exists() or target.read_bytes() != page.content:
            write_atomic(target, page.content)
            target.chmod(0o644)
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.part")
    shutil.copyfile(page.content, aside)
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.chmod(0o644)
    aside.replace(target)
    return True


@contextlib.contextmanager
def _lock(output: Path) -> Iterator[None]:
    """Hold the site: its directory is the lock, so that none is left over."""
    output.mkdir(parents=True, exist_ok=True)
    lock = os.open(output, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
