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
from builder.publish.index.site import FILES, MANIFEST, UNFINISHED, Page


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
            _begin(output)
            return _write_all(site, output)
    except OSError as error:
        raise BuilderError(
            f"cannot write '{output}': {error.strerror}", help="free the disk, or name another place with --output"
        ) from error


def _refuse_changes(site: Mapping[str, Page], output: Path) -> None:
    if not (output / FILES).exists():
        return
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


def _begin(output: Path) -> None:
    """Say whose folder it is before anything else is written: a run that is interrupted is taken up by the next."""
    manifest = output / MANIFEST
    if not manifest.exists():
        write_atomic(manifest, UNFINISHED)


def _write_all(site: Mapping[str, Page], output: Path) -> int:
    """Write files, and bring wheels to the disk before pages, and pages before the manifest; return the new wheels."""
    for folder in sorted({path.rpartition("/")[0] for path in site}):
        (output / folder).mkdir(parents=True, exist_ok=True)
    fixed = [path for path, page in site.items() if page.fixed]
    pages = [path for path, page in site.items() if not page.fixed and path != MANIFEST]
    new = 0
    for paths in (fixed, pages, [MANIFEST]):
        new += sum(_write(site[path], f"{output}/{path}") for path in paths)
        os.sync()  # once for all of them: a thousand kernels have a hundred thousand files
    return new


def _write(page: Page, target: str) -> bool:
    """Write one file; whether it is a wheel that was not there. A text, as a Path takes longer to make than a file."""
    content = page.content
    there = os.path.exists(target)  # noqa: PTH110
    if there and (page.fixed or (isinstance(content, bytes) and Path(target).read_bytes() == content)):
        return False
    folder, _, name = target.rpartition("/")
    aside = f"{folder}/.{name}.part"
    if isinstance(content, bytes):
        with open(aside, "wb") as file:  # noqa: PTH123
            file.write(content)
    else:
        shutil.copyfile(content, aside)
    os.chmod(aside, 0o644)  # noqa: PTH101
    os.replace(aside, target)  # noqa: PTH105
    return isinstance(content, Path)


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
