"""Write a site: wheels first, pages last, so that a reader never follows a link to a file that is not there."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from builder import json_text
from builder.errors import BuilderError, NothingToDoError
from builder.files import is_at, lock, write_atomic
from builder.hashes import sha256_of
from builder.publish.index.simple import Uploads, is_time
from builder.publish.index.site import FILES, MANIFEST, UNFINISHED, UPLOADED, Page
from builder.publish.index.workers import Map

_BATCH = 250
"""Files that are written by one process in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Some files of a site."""

    output: str
    files: tuple[tuple[str, bytes | Path], ...]
    """By their path in it."""
    first: bool
    """Whether the site was never finished, so that nobody reads it."""


@contextlib.contextmanager
def held(output: Path) -> Iterator[None]:
    """Hold an index from before it is read until it is written: others that add to it wait, and add to what is there.

    Its directory is the lock, so that none is left over; one that was made for it goes if nothing was written.

    Raises:
        NothingToDoError: `output` is not a directory.
        BuilderError: it cannot be made.
    """
    if output.exists() and not output.is_dir():
        raise NothingToDoError(f"'{output}' is not a directory", help="name another place with --output")
    try:
        held, made = _locked(output)
    except OSError as error:
        raise _cannot_write(output, error) from error
    try:
        yield
    finally:
        if made:
            with contextlib.suppress(OSError):  # it has files
                output.rmdir()
        os.close(held)


def _locked(output: Path) -> tuple[int, bool]:
    """Return the lock of a directory, and whether the directory was made for it."""
    while True:
        made = not output.exists()
        output.mkdir(parents=True, exist_ok=True)
        held = os.open(output, os.O_RDONLY)
        lock(held)
        if is_at(held, output):
            return held, made
        os.close(held)  # another process removed it, which had written nothing


def existing_wheels(output: Path) -> tuple[Path, ...]:
    """Return the wheels that the index in `output` has.

    Raises:
        NothingToDoError: `output` has files and is not an index that this tool made.
    """
    manifest = output / MANIFEST
    if not manifest.is_file():
        if output.is_dir() and any(output.iterdir()):
            raise NothingToDoError(
                f"'{output}' has files and no {MANIFEST}, so it is not an index of this tool",
                help="name an empty or a new directory with --output",
            )
        return ()
    return tuple(output / FILES / name for name in _names(manifest))


def existing_uploads(output: Path) -> Uploads:
    """Return when the wheels of the index in `output` came there, as far as it says it.

    Raises:
        NothingToDoError: its manifest cannot be read.
    """
    manifest = output / MANIFEST
    if not manifest.is_file():
        return {}
    found = _read(manifest).get(UPLOADED, {})
    if not isinstance(found, dict) or not all(map(is_time, found.values())):
        raise NothingToDoError(
            f"'{manifest}' names times that are none", help="delete the index and make it again from the wheels"
        )
    return found


def _read(manifest: Path) -> dict[str, Any]:
    try:
        table = json_text.read(manifest)
        return {**table, "files": tuple(sorted(table["files"]))}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NothingToDoError(
            f"'{manifest}' cannot be read: {error}", help="delete the index and make it again from the wheels"
        ) from error


def _names(manifest: Path) -> tuple[str, ...]:
    names: tuple[str, ...] = _read(manifest)["files"]
    if any("/" in name or not name.endswith(".whl") for name in names):
        message = f"'{manifest}' names a file that is not a wheel"
        raise NothingToDoError(message, help="delete the index and make it again")
    return names


def write(site: Mapping[str, Page], output: Path, *, each: Map = map) -> int:
    """Write every file that is not there yet, and return how many wheels were new; `output` is `held`.

    Raises:
        NothingToDoError: a wheel or what belongs to it is there with other content.
        BuilderError: `output` cannot be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        first = _is_first(output)
        if not first:
            _refuse_changes(site, output, each)
        return _write_all(site, output, each, first=first)
    except OSError as error:
        raise _cannot_write(output, error) from error


def _cannot_write(output: Path, error: OSError) -> BuilderError:
    return BuilderError(
        f"cannot write '{output}': {error.strerror}", help="free the disk, or name another place with --output"
    )


def _refuse_changes(site: Mapping[str, Page], output: Path, each: Map) -> None:
    fixed = [path for path, page in site.items() if page.fixed]
    changed = sorted(chain.from_iterable(each(_changed, _batches(site, fixed, output, first=False))))
    if changed:
        raise NothingToDoError(
            f"'{output}' already has other files named {', '.join(changed)}",
            help="a published wheel never changes: build it with another --wheel-version",
        )


def _batches(site: Mapping[str, Page], paths: Sequence[str], output: Path, *, first: bool) -> Iterator[_Batch]:
    """Yield files in their order, as many at a time as are worth to be sent to another process."""
    for start in range(0, len(paths), _BATCH):
        files = tuple((path, site[path].content) for path in paths[start : start + _BATCH])
        yield _Batch(output=str(output), files=files, first=first)


def _changed(batch: _Batch) -> list[str]:
    """Return those files of a batch that are there with other content."""
    return [path for path, content in batch.files if not _absent_or_same(content, Path(f"{batch.output}/{path}"))]


def _absent_or_same(content: bytes | Path, target: Path) -> bool:
    if not target.exists():
        return True
    if isinstance(content, bytes):
        return target.read_bytes() == content
    return target.samefile(content) or sha256_of(target) == sha256_of(content)


def _is_first(output: Path) -> bool:
    """Return whether no run has finished the site, and say whose folder it is before anything else is written.

    What an interrupted first run left is taken up by the next; a file of it may be there in part.
    """
    manifest = output / MANIFEST
    if not manifest.exists():
        write_atomic(manifest, UNFINISHED)
    return manifest.read_bytes() == UNFINISHED


def _write_all(site: Mapping[str, Page], output: Path, each: Map, *, first: bool) -> int:
    """Write files, and bring wheels to the disk before pages, and pages before the manifest; return the new wheels."""
    for folder in sorted({path.rpartition("/")[0] for path in site}):
        with contextlib.suppress(FileExistsError):
            _make(f"{output}/{folder}")
    fixed = [path for path, page in site.items() if page.fixed]
    pages = [path for path, page in site.items() if not page.fixed and path != MANIFEST]
    new = 0
    for paths, write in ((fixed, _write_absent), (pages, _write_changed), ([MANIFEST], _write_changed)):
        new += sum(each(write, _batches(site, paths, output, first=first and paths != [MANIFEST])))
        os.sync()  # once for all of them: a thousand kernels have a hundred thousand files
    return new


def _make(folder: str) -> None:
    """Make a folder that is not there: mostly in one that is, as they are made in their order."""
    try:
        os.mkdir(folder)  # noqa: PTH102
    except FileNotFoundError:
        os.makedirs(folder)  # noqa: PTH103


def _write_absent(batch: _Batch) -> int:
    """Write those files of a batch that are not there; return how many of them are wheels."""
    new = 0
    for path, content in batch.files:
        target = f"{batch.output}/{path}"
        there = os.path.exists(target)  # noqa: PTH110  a Path takes longer to make than a file
        if not there or (batch.first and not _absent_or_same(content, Path(target))):
            _write(content, target, aside=not batch.first)
            new += isinstance(content, Path)
    return new


def _write_changed(batch: _Batch) -> int:
    """Write those files of a batch that are not there as they are to be; none is a wheel."""
    for path, content in batch.files:
        target = f"{batch.output}/{path}"
        if not (isinstance(content, bytes) and _content(target) == content):
            _write(content, target, aside=not batch.first)
    return 0


def _content(target: str) -> bytes | None:
    try:
        with open(target, "rb") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return None


def _write(content: bytes | Path, target: str, *, aside: bool) -> None:
    """Write one file; `aside` under another name first, so that it is there complete, or not at all.

    A site that nobody reads yet is written without: the renaming is a third of the time to make many small files.
    """
    folder, _, name = target.rpartition("/")
    written = f"{folder}/.{name}.part" if aside else target
    if isinstance(content, bytes):
        with open(written, "wb") as file:  # noqa: PTH123
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
    else:
        shutil.copyfile(content, written)
        os.chmod(written, 0o644)  # noqa: PTH101
    if aside:
        os.replace(written, target)  # noqa: PTH105
