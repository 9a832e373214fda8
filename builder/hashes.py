"""Digests of texts, files and folders, in the spellings that other tools use."""

import base64
import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from builder.errors import ToolError

_CHUNK = 1 << 20
_WORD = 8
"""Bytes of a length field in Nix's archives; each text is padded to a multiple of this."""
Write = Callable[[bytes], object]
Hasher = hashlib.sha256
"""Start a sha256 of data that comes in pieces."""


def digest(pieces: Iterable[bytes]) -> bytes:
    """Return the sha256 of all pieces, one after the other."""
    found = Hasher()
    for piece in pieces:
        found.update(piece)
    return found.digest()


def sha256(content: bytes | str) -> str:
    """Return the sha256 of bytes, or of a text in UTF-8, in hexadecimal."""
    return Hasher(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    found = Hasher()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def base64_sha256(content: bytes) -> str:
    """Return the sha256 of bytes in base64, as metadata.json and content security policies spell it."""
    return base64.b64encode(Hasher(content).digest()).decode()


def record_hash(sha256: bytes) -> str:
    """Spell a sha256 as a RECORD file does: `sha256=` and unpadded URL-safe base64."""
    return f"sha256={base64.urlsafe_b64encode(sha256).rstrip(b'=').decode()}"


def git_blob(content: bytes, *, function: str = "sha1") -> str:
    """Return git's object name for a file with this content, with git's hash function."""
    return hashlib.new(function, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def nar(folder: Path, *, links: bool = False) -> str:
    """Return Nix's hash of a folder, `sha256-<base64>`; times and owners of its files do not count.

    Raises:
        ToolError: the folder contains something other than files and folders, or a symbolic link without `links`.
    """
    found = Hasher()
    _text(found.update, b"nix-archive-1")
    _node(found.update, folder, links=links)
    return f"sha256-{base64.b64encode(found.digest()).decode()}"


def _node(write: Write, path: Path, *, links: bool) -> None:
    status = path.lstat()
    _text(write, b"(", b"type")
    if stat.S_ISDIR(status.st_mode):
        _text(write, b"directory")
        for child in sorted(path.iterdir(), key=lambda each: each.name.encode()):
            _text(write, b"entry", b"(", b"name", child.name.encode(), b"node")
            _node(write, child, links=links)
            _text(write, b")")
    elif stat.S_ISREG(status.st_mode):
        _text(write, b"regular", *((b"executable", b"") if status.st_mode & stat.S_IXUSR else ()), b"contents")
        write(status.st_size.to_bytes(_WORD, "little"))
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                write(chunk)
        write(bytes(-status.st_size % _WORD))
    elif links and stat.S_ISLNK(status.st_mode):
        _text(write, b"symlink", b"target", os.fsencode(path.readlink()))
    else:
        raise ToolError(f"'{path}' is neither a file nor a folder", help="remove it, and what it came with")
    _text(write, b")")


def _text(write: Write, *texts: bytes) -> None:
    for text in texts:
        write(len(text).to_bytes(_WORD, "little"))
        write(text)
        write(bytes(-len(text) % _WORD))
