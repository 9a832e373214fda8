"""Provide the foreign sources of a kernel: fetch each tree once into the store, and verify it at each use."""

import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

from builder import json_text
from builder.config.sources import ForeignSource
from builder.environment.download import Fetching, download
from builder.errors import BuilderError, WrongHashError
from builder.files import write_atomic
from builder.hashes import sha256, sha256_of
from builder.kernel.git_fetch import Fetcher
from builder.make import source_trees
from builder.store import SOURCES, Store
from builder.wording import quoted

MIRRORS = "BUILDER_MIRRORS"
"""Variable with replacements for URLs, `PREFIX=PLACE`, separated by spaces."""
_ENTRY = "source.json"
_TREE = "tree"
_REMEDY = f"look whether it can be reached from here; {MIRRORS} names another place, HTTPS_PROXY a proxy"
_PLACE = re.compile(r"(?:https?|ssh|file)://\S+|/\S*")


def tree(name: str, source: ForeignSource, fetching: Fetching) -> Path:
    """Return the verified folder of a foreign source; fetch it if the store lacks it.

    Raises:
        ToolError: it cannot be fetched, or does not have its hash.
        StoreError: the store cannot be written.
    """

    def fetch(scratch: Path) -> Path:
        fetching.progress(f"fetching the foreign source '{name}'")
        fresh = scratch / "fresh"
        fresh.mkdir()
        _bring(name, source, fresh / _TREE, scratch, fetching)
        digest = source_trees.digest(fresh / _TREE)
        write_atomic(fresh / _ENTRY, json_text.canonical({"digest": digest, **_said(source)}).encode())
        return fresh

    def is_as_fetched(folder: Path) -> bool:
        expected: object = json_text.read(folder / _ENTRY)["digest"]
        return source_trees.digest(folder / _TREE) == expected

    called = f"the foreign source '{name}'"
    return fetching.tree(SOURCES, identity(source), called=called, is_right=is_as_fetched, fetch=fetch) / _TREE


def _bring(name: str, source: ForeignSource, target: Path, scratch: Path, fetching: Fetching) -> None:
    """Fetch a commit, or fetch and unpack an archive."""
    environ, processes = fetching.environ, fetching.processes
    mirrors = read_mirrors(environ)
    if source.git is not None and source.rev is not None:
        fetcher = Fetcher(environ=environ, resolve=lambda url: _resolved(url, mirrors), processes=processes)
        fetcher.fetch(source.git, source.rev, target, submodules=source.submodules)
        source_trees.require_inside(target, name=f"the commit {source.rev} of {source.git}")
        return
    archive = scratch / "archive"
    place = _resolved(str(source.url), mirrors)
    download(place, archive, environ=environ, processes=processes, remedy=_REMEDY)
    found = sha256_of(archive)
    if found != source.sha256:
        raise WrongHashError(
            f"the archive of the foreign source '{name}' is not the one that build.toml names\n"
            f"  --> {place}\n      expected sha256 {source.sha256}\n      found sha256    {found}",
            help="ask its publisher why it changed; if it is right, write the sha256 that was found",
        )
    source_trees.unpack(archive, target, name=str(source.url))


def is_kept(store: Store, source: ForeignSource) -> bool:
    """Whether a store has the tree of a source; using the tree verifies it."""
    return (store.root / SOURCES / identity(source) / _ENTRY).is_file()


def identity(source: ForeignSource) -> str:
    """Return the name of a tree in the store: its hash and submodules, but not its URL."""
    return sha256(json_text.canonical(_said(source)))[:40]


def _said(source: ForeignSource) -> dict[str, object]:
    if source.git is None:
        return {"sha256": source.sha256}
    return {"commit": source.rev, "submodules": source.submodules or []}


def read_mirrors(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the replacements for URLs, by the prefix of these URLs.

    Raises:
        BuilderError: the variable contains something else.
    """
    found = {}
    for entry in environ.get(MIRRORS, "").split():
        prefix, _, place = entry.partition("=")
        if not prefix or _PLACE.fullmatch(place) is None:
            raise BuilderError(
                f"{MIRRORS} has {quoted(entry)}, which is not PREFIX=PLACE",
                help="write it as https://github.com/=https://mirror.example.org/git/, with spaces between several; "
                "a place is a URL or an absolute path",
            )
        found[prefix] = place
    return found


def _resolved(url: str, mirrors: Mapping[str, str]) -> str:
    """Return the place to fetch a URL from; the longest prefix wins."""
    prefix = max((prefix for prefix in mirrors if url.startswith(prefix)), key=len, default=None)
    place = url if prefix is None else mirrors[prefix] + url.removeprefix(prefix)
    return urllib.parse.unquote(place.removeprefix("file://")) if place.startswith("file:///") else place
