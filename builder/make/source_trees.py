"""Unpack the tree of a foreign source from an archive that may be hostile, digest it, and lay it out for a build."""

import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from builder.errors import ToolError
from builder.hashes import Hasher, sha256_of
from builder.wording import quoted

FOLDER = "sources"
"""The folder in a build's scratch directory with the trees, by name."""
_MOST_MEMBERS = 300_000
_MOST_BYTES = 8 << 30
"""The most bytes of a tree's files together; the largest kernel projects have a tenth of that."""
_MOST_RATIO = 1_000
"""The largest ratio of a tree to its archive; repetitive text compresses to a hundredth."""
_CHUNK = 1 << 20
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
    *(EOFError, OSError, ValueError, NotImplementedError, RuntimeError),
)
"""The errors for a file that is not a valid archive: `zipfile` raises NotImplementedError for an unknown method, and
RuntimeError for an encrypted member whose entry does not say so."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A file, folder or link in an archive."""

    path: str
    kind: str
    """`file`, `folder`, `link` or `hard link`."""
    executable: bool
    target: str
    size: int
    opened: Callable[[], IO[bytes] | None]


def place(base: Path, name: str) -> Path:
    """Return the path where a build finds the tree of a foreign source; `base` is its scratch directory."""
    return base / FOLDER / name


def lay_out(sources: Mapping[str, Path], scratch: Path, *, mounted: bool) -> None:
    """Make the folder of each tree in a scratch directory; without a sandbox to mount them, copy or unpack the trees.

    Raises:
        ToolError: an archive is damaged or hostile.
    """
    for name, source in sources.items():
        target = place(scratch, name)
        if mounted:
            target.mkdir(parents=True, exist_ok=True)
            continue
        if target.is_dir():
            continue  # from a stopped build
        fresh = target.with_name(f"{name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        if source.is_dir():
            shutil.copytree(source, fresh, symlinks=True)
        else:
            unpack(source, fresh, name=f"the archive of '{name}'")
        fresh.rename(target)


def unpack(archive: Path, target: Path, *, name: str) -> None:
    """Unpack an archive to `target`; a single folder at its top is stripped.

    `name` is the archive's name in errors.

    Raises:
        ToolError: the archive is damaged or too large, or contains links out of the tree, devices or absolute paths.
    """
    target.mkdir(parents=True)
    try:
        with archive.open("rb") as file:
            magic = file.read(4)
        most = min(_MOST_BYTES, max(archive.stat().st_size, 1 << 16) * _MOST_RATIO)
        if magic.startswith(b"PK"):
            with zipfile.ZipFile(archive) as opened:
                _write(_of_zip(opened, name), target, most=most, name=name)
        else:
            with tarfile.open(archive, "r:*") as tar:
                _write(_of_tar(tar, name), target, most=most, name=name)
    except _DAMAGED as error:
        remedy = "look at it by hand: it may be damaged, or no archive at all"
        raise ToolError(f"{name} cannot be unpacked: {error}", help=remedy) from error
    (first, *others) = [*target.iterdir(), None]
    if first is not None and not any(others) and first.is_dir() and not first.is_symlink():
        aside = target.with_name(f"{target.name}.top")
        first.rename(aside)
        target.rmdir()
        aside.rename(target)
    require_inside(target, name=name)


def _of_tar(tar: tarfile.TarFile, name: str) -> Iterator[_Member]:
    for info in tar:
        kinds = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "hard link"}
        kind = "file" if info.isreg() else kinds.get(info.type)
        if kind is None:
            raise _refused(name, info.name, "is neither a file, a folder nor a link")
        opened = partial(tar.extractfile, info)
        yield _Member(info.name, kind, bool(info.mode & 0o111), info.linkname, info.size, opened)


def _of_zip(opened: zipfile.ZipFile, name: str) -> Iterator[_Member]:
    for info in opened.infolist():
        mode = info.external_attr >> 16
        if info.flag_bits & 1:
            raise _refused(name, info.filename, "is encrypted")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise _refused(name, info.filename, "is neither a file, a folder nor a link")
        kind, link, size = "file", "", info.file_size
        if info.is_dir() or stat.S_ISDIR(mode):
            kind, size = "folder", 0
        elif stat.S_ISLNK(mode):
            kind, link, size = "link", opened.read(info)[:4096].decode("utf-8", "replace"), 0
        yield _Member(info.filename, kind, bool(mode & 0o111), link, size, partial(opened.open, info.filename))


def _write(members: Iterator[_Member], target: Path, *, most: int, name: str) -> None:
    """Write files and folders first, so that no file is written through a link of the archive."""
    links: list[_Member] = []
    size = 0
    for number, member in enumerate(members):
        path = _inside(member.path, name)
        size += member.size
        if number >= _MOST_MEMBERS or size > most:
            raise ToolError(
                f"{name} has more than {_MOST_MEMBERS} members or {most >> 20} MiB when unpacked",
                help="no source tree is that large: look at the archive",
            )
        if path is None:
            continue
        match member.kind:
            case "folder":
                (target / path).mkdir(parents=True, exist_ok=True)
            case "file":
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                content = member.opened()
                if content is None:
                    raise ValueError(f"'{member.path}' has no content")
                with content, (target / path).open("wb") as file:
                    shutil.copyfileobj(content, file, _CHUNK)
                (target / path).chmod(0o755 if member.executable else 0o644)
            case _:
                links.append(member)
    for member in links:
        _link(member, target, name)


def _inside(path: str, name: str) -> PurePosixPath | None:
    """Return the relative path of a member; None for the root itself."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\\" in path or not path.isprintable():
        raise _refused(name, path, "has a path that leaves the tree, or is no plain path")
    return PurePosixPath(*parts) if parts else None


def _link(member: _Member, target: Path, name: str) -> None:
    path = target / str(_inside(member.path, name))
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        raise _refused(name, member.path, "is there twice")
    if member.kind == "link":
        path.symlink_to(member.target)
        return
    original = target / str(_inside(member.target, name))
    if original.is_symlink() or not original.is_file():
        raise _refused(name, member.path, f"is a hard link to {quoted(member.target)}, which is no file of the archive")
    shutil.copy2(original, path)


def require_inside(root: Path, *, name: str) -> None:
    """Refuse a tree with a link that leads out of it.

    Raises:
        ToolError: there is such a link, or something other than a file, a folder or a link.
    """
    real = Path(os.path.realpath(root))
    for path, status in _walk(root):
        inner = path.relative_to(root).as_posix()
        if stat.S_ISLNK(status.st_mode):
            to = str(path.readlink())
            if to.startswith("/") or not Path(os.path.realpath(path)).is_relative_to(real):
                raise _refused(name, inner, f"is a link to {quoted(to)}, which is outside of the tree")
        elif not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise _refused(name, inner, "is neither a file, a folder nor a link")


def digest(root: Path) -> str:
    """Return the sha256 of a tree's paths, kinds and contents, without times and owners."""
    result = Hasher()
    for path, status in _walk(root):
        kind, content = "other", b""
        if stat.S_ISDIR(status.st_mode):
            continue
        if stat.S_ISLNK(status.st_mode):
            kind, content = "link", os.fsencode(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            kind = "program" if status.st_mode & stat.S_IXUSR else "file"
            content = bytes.fromhex(sha256_of(path))
        name = os.fsencode(path.relative_to(root).as_posix())
        result.update(f"{kind} {len(name)} {len(content)} ".encode() + name + content)
    return result.hexdigest()


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the entries of a tree, always in the same order and without following links."""
    folders = [root]
    while folders:
        for entry in sorted(os.scandir(folders.pop()), key=lambda entry: os.fsencode(entry.name)):
            status = entry.stat(follow_symlinks=False)
            yield Path(entry.path), status
            if stat.S_ISDIR(status.st_mode):
                folders.append(Path(entry.path))


def _refused(name: str, member: str, why: str) -> ToolError:
    return ToolError(
        f"{name} is refused: {quoted(member)} {why}",
        help="nothing of it is used; ask who publishes it, or take another",
    )
