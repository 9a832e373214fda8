"""The hash that Nix names a folder by: the sha256 of its files in one archive, with no times and no owners."""

import base64
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from builder.errors import ToolError

_CHUNK = 1 << 20
_WORD = 8
"""Bytes of a length; every text is filled up to a multiple of it."""

Write = Callable[[bytes], object]


def sri(folder: Path, *, links: bool = False) -> str:
    """Return the hash of a folder, as `sha256-<base64>`, which is how Nix writes that of a fixed-output derivation.

    Raises:
        ToolError: something in it is neither a file nor a folder, nor a symbolic link where these may be.
    """
    digest = hashlib.sha256()
    _text(digest.update, b"nix-archive-1")
    _node(digest.update, folder, links=links)
    return f"sha256-{base64.b64encode(digest.digest()).decode()}"


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
        _file(write, path, status.st_size)
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


def _file(write: Write, path: Path, size: int) -> None:
    write(size.to_bytes(_WORD, "little"))
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            write(chunk)
    write(bytes(-size % _WORD))
