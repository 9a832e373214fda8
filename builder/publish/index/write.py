"""Write a site: wheels first, pages last, so that no page links to a missing file."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from builder import json_text
from builder.errors import BuilderError, NothingToDoError
from builder.files import is_at, lock, write_atomic
from builder.hashes import sha256_of
from builder.publish.index.contents import MANIFEST, UNFINISHED, UPLOADED, Page
from builder.publish.index.simple import FILES, is_time


@contextlib.contextmanager
def held(output: Path) -> Iterator[None]:
    """Lock an index before it is read and until it is written: other processes that add to it wait.

    The directory itself is the lock, so no lock file remains; a new directory is removed if nothing was written.

    Raises:
        NothingToDoError: `output` is not a directory.
        BuilderError: the directory cannot be made.
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
    """Return the lock of a directory, and whether the directory was created."""
    while True:
        made = not output.exists()
        output.mkdir(parents=True, exist_ok=True)
        held = os.open(output, os.O_RDONLY)
        lock(held)
        if is_at(held, output):
            return held, made
        os.close(held)  # another process, which had written nothing, removed it


def existing(output: Path) -> dict[Path, str | None]:
    """Return the wheels in the index at `output`, with their upload times if known.

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
        return {}
    again = "delete the index and make it again from the wheels"
    try:
        table = json_text.read(manifest)
        names, times = sorted(table["files"]), table.get(UPLOADED, {})
        named = all("/" not in name and name.endswith(".whl") for name in names)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NothingToDoError(f"'{manifest}' cannot be read: {error}", help=again) from error
    if not named:
        message = f"'{manifest}' names a file that is not a wheel"
        raise NothingToDoError(message, help="delete the index and make it again")
    if not isinstance(times, dict) or not all(map(is_time, times.values())):
        raise NothingToDoError(f"'{manifest}' has invalid times", help=again)
    return {output / FILES / name: times.get(name) for name in names}


def made_before(output: Path) -> dict[str, tuple[Path, str]]:
    """Return the wheels that an `existing` index has of others, by their paths in it, with the digests it names."""
    manifest = output / MANIFEST
    made = json_text.read(manifest).get("made") if manifest.is_file() else None
    listed = made.items() if isinstance(made, dict) else ()
    return {path: (output / path, sha256) for path, sha256 in listed if path.endswith(".whl")}


def write(site: Mapping[str, Page], output: Path) -> int:
    """Write every missing file, and return the number of new wheels; `output` must be `held`.

    Raises:
        NothingToDoError: a wheel or one of its files exists with other content.
        BuilderError: `output` cannot be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        manifest = output / MANIFEST
        if not manifest.exists():  # the manifest marks the folder as ours before anything else is written
            write_atomic(manifest, UNFINISHED)
        # The next run continues an interrupted first run, which may have left an incomplete file.
        first = manifest.read_bytes() == UNFINISHED
        fixed = [path for path, page in site.items() if page.fixed]
        changed = [] if first else sorted(path for path in fixed if _differs(site[path].content, output / path))
        if changed:
            raise NothingToDoError(
                f"'{output}' already has other files named {', '.join(changed)}",
                help="a published wheel never changes: build it with another --wheel-version",
            )
        pages = [path for path, page in site.items() if not page.fixed and path != MANIFEST]
        new = sum(_write(site[path], output / path, first=first) for path in fixed)
        os.sync()  # once for all files: a thousand kernels have a hundred thousand
        for path in pages:
            _write(site[path], output / path, first=first)
        os.sync()
        _write(site[MANIFEST], manifest, first=False)
        os.sync()
    except OSError as error:
        raise _cannot_write(output, error) from error
    return new


def _cannot_write(output: Path, error: OSError) -> BuilderError:
    return BuilderError(
        f"cannot write '{output}': {error.strerror}", help="free the disk, or name another place with --output"
    )


def _differs(content: bytes | Path, target: Path) -> bool:
    """Whether a file exists with other content."""
    if not target.exists():
        return False
    if isinstance(content, bytes):
        return target.read_bytes() != content
    return not target.samefile(content) and sha256_of(target) != sha256_of(content)


def _write(page: Page, target: Path, *, first: bool) -> bool:
    """Write a file unless it exists with this content; return whether it is a new wheel.

    It is written under another name and renamed, so that it is never incomplete. The `first` run, whose site nobody
    reads yet, writes directly: renaming takes a third of the time for many small files.
    """
    content = page.content
    if target.exists() and ((page.fixed and not first) or not _differs(content, target)):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target if first else target.with_name(f".{target.name}.part")
    if isinstance(content, bytes):
        written.write_bytes(content)
    else:
        shutil.copyfile(content, written)
    written.chmod(0o644)
    if not first:
        written.replace(target)
    return isinstance(content, Path)
