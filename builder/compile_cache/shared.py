"""Open the caches of a run: the store's, and the shared one by its address."""

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from builder.compile_cache import Access
from builder.compile_cache.caches import Caches, SharedCache
from builder.compile_cache.folder import Folder
from builder.errors import BuilderError
from builder.store import COMPILED, Store
from builder.wording import nearest, quoted

SCHEMES = ("file", "redis", "rediss", "s3")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def at(url: str, *, environ: Mapping[str, str]) -> SharedCache:
    """Return the cache at a URL; a path is a folder.

    Raises:
        BuilderError: the URL is not that of a cache, or a package for it is not installed.
    """
    match = _URL.match(url)
    if match is None:
        return _folder(url)
    scheme = match[1].lower()
    if scheme == "file":
        return _folder(unquote(url[match.end() :]))
    if scheme not in SCHEMES:
        guess = nearest(scheme, SCHEMES)
        remedy = f"did you mean '{guess}'?" if guess else f"there are {', '.join(SCHEMES)}, and the path of a folder"
        raise BuilderError(f"{quoted(scheme)} is no cache of compiled files", help=remedy)
    try:
        is_host = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        is_host = False
    if not is_host:
        remedy = "write redis://HOST:PORT/NUMBER or s3://BUCKET/PREFIX"
        raise BuilderError(f"{quoted(without_password(url))} is no URL of a cache", help=remedy)
    try:
        if scheme == "s3":
            from builder.compile_cache import object_store  # noqa: PLC0415  needs a package of its own

            return object_store.at(url, name=without_password(url), endpoint=environ.get("AWS_ENDPOINT_URL"))
        from builder.compile_cache import redis_server  # noqa: PLC0415

        return redis_server.at(url, name=without_password(url))
    except ModuleNotFoundError as error:
        raise BuilderError(
            f"the cache '{without_password(url)}' needs the package {error.name}",
            help="install it with: python -m pip install 'kernel-wheel-builder[cache]'",
        ) from error


def without_password(url: str) -> str:
    """Return a URL without its password, for messages."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _folder(path: str) -> Folder:
    if not Path(path).is_absolute():
        raise BuilderError(f"the cache {quoted(path)} is no absolute path", help="give a URL, or the whole path")
    return Folder(root=Path(path))


def caches_of(
    url: str | None, store: Store, *, access: Access, size: int, writable: bool, environ: Mapping[str, str]
) -> Caches:
    """Return the caches of a run: the store's, of at most `size` bytes, and the shared one at `url`, if there is one.

    `writable` says whether the store can be written. No request is sent yet.

    Raises:
        BuilderError: the URL of the shared cache is not valid.
    """
    return Caches(
        local=Folder(root=store.root / COMPILED, limit=size, distrusts=store.stranger),
        writable=writable,
        shared=None if url is None else at(url, environ=environ),
        access=access,
        writer=platform.node(),
    )
