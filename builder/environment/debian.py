"""Find Debian packages on mirrors, and unpack them."""

import lzma
import os
import posixpath
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from builder.errors import BuilderError, NotHereError, ToolError
from builder.run import ask
from builder.toolchain.tool import os_release
from builder.wording import quoted

MIRROR = "BUILDER_DEBIAN_MIRROR"
"""Variable with mirrors, separated by spaces: URLs or absolute paths of folders, each with a `pool`."""
_STARTS = ("http://", "https://", "/")
_MAGIC = b"!<arch>\n"
_HEADER = 60
_DATA = "data.tar.xz"
"""The archive with the files, as Debian has compressed it since 2012."""
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders that are in /usr on Debian, even if a package has them at the root."""


def mirrors(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the mirrors to ask, in order, without a final slash.

    Raises:
        BuilderError: the variable contains something else.
        NotHereError: no mirror is known.
    """
    named = environ.get(MIRROR, "").split()
    for place in named:
        if not place.startswith(_STARTS):
            raise BuilderError(
                f"{MIRROR} has {quoted(place)}, which is no mirror",
                help="write URLs or absolute paths of folders that have Debian's 'pool', with spaces between them",
            )
    found = named or _of_apt(environ)
    if not found:
        raise NotHereError(
            "no mirror of Debian is known, and the pinned compilers are packages of Debian 12",
            help=f"name one: {MIRROR}=https://mirror.example.org/debian, or a folder with its 'pool'",
        )
    return tuple(dict.fromkeys(place.rstrip("/") for place in found))


def _of_apt(environ: Mapping[str, str]) -> list[str]:
    """Return the mirrors in apt's settings; empty if they are not Debian's, as on Ubuntu."""
    if os_release().get("ID") != "debian":
        return []
    program = shutil.which("apt-get", path=environ.get("PATH", os.defpath))
    if program is None:
        return []
    try:
        argv = (program, "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
        done = ask(argv, env={**environ, "LC_ALL": "C"})
    except ToolError:
        return []
    if done.returncode != 0:
        return []
    return [line.removeprefix("file://") for line in done.stdout.split() if line.startswith((*_STARTS, "file:///"))]


def unpack(package: Path, root: Path, *, wanted: Callable[[str], bool]) -> None:
    """Unpack the files of a package whose path below the root, such as `usr/bin/gcc`, is `wanted`.

    Raises:
        ToolError: it is not a package, or contains something that a compiler does not need, such as a device.
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
    """Go to the start of the archive with the files, and return the archive's name."""
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
        # Make an absolute link target relative, so that the root can be anywhere.
        folder, link = posixpath.dirname(path), member.linkname
        whole = link if link.startswith("/") else posixpath.join("/", folder, link)
        target.symlink_to(posixpath.relpath(_below(whole, package), folder))
    elif member.isfile() and (content := archive.extractfile(member)) is not None:
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)
    else:
        raise _damaged(package, f"'{path}' is no file, folder or symbolic link")


def _damaged(package: Path, why: str) -> ToolError:
    return ToolError(f"'{package.name}' cannot be unpacked: {why}", help="remove it, and fetch it again")
