"""Unpack packages of Debian: an `ar` archive, in which a compressed tar has the files."""

import lzma
import os
import posixpath
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from builder.errors import ToolError

_MAGIC = b"!<arch>\n"
_HEADER = 60
_DATA = "data.tar.xz"
"""How Debian has compressed files since 2012."""
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders that Debian has below /usr, whatever a package calls them."""


def unpack(package: Path, root: Path, *, wanted: Callable[[str], bool]) -> None:
    """Add the files of a package whose path below the root, such as `usr/bin/gcc`, is `wanted`.

    Links with an absolute target are made relative, so that the root may be anywhere.

    Raises:
        ToolError: it is no package, or has something that a compiler has not.
        OSError: a file cannot be read or written.
    """
    with package.open("rb") as file:
        name = _seek_data(file, package)
        if name != _DATA:
            raise _damaged(package, f"'{name}' is compressed in another way than xz")
        try:
            with tarfile.open(fileobj=file, mode="r|xz") as archive:
                for member in archive:
                    path = _below(member.name, package)
                    if wanted(path):
                        _add(archive, member, path, root, package)
        except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
            raise _damaged(package, str(error)) from error


def _seek_data(file: BinaryIO, package: Path) -> str:
    """Go to the first byte of the archive with the files, and return its name."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise _damaged(package, "it is no ar archive")
    while len(header := file.read(_HEADER)) == _HEADER:
        name, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), header[48:58].strip()
        if not size.isdigit():
            break
        if name.startswith("data.tar"):
            return name
        file.seek(int(size) + int(size) % 2, os.SEEK_CUR)
    raise _damaged(package, "it has no data.tar")


def _below(name: str, package: Path) -> str:
    path = posixpath.normpath(name.lstrip("/"))
    if path.split("/")[0] == "..":
        raise _damaged(package, f"it has '{name}'")
    return f"usr/{path}" if path.split("/")[0] in _MERGED else path


def _add(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, root: Path, package: Path) -> None:
    target = root / path
    if member.isdir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(_relative(member.linkname, path, package))
    elif member.isfile() and (content := archive.extractfile(member)) is not None:
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)
    else:
        raise _damaged(package, f"'{path}' is no file, folder or symbolic link")


def _relative(link: str, path: str, package: Path) -> str:
    """Return the target of a link from the folder that the link is in."""
    whole = link if link.startswith("/") else posixpath.join("/", posixpath.dirname(path), link)
    return posixpath.relpath(_below(whole, package), posixpath.dirname(path))


def _damaged(package: Path, why: str) -> ToolError:
    return ToolError(f"'{package.name}' cannot be unpacked: {why}", help="remove it, and fetch it again")
