"""The caches that a run uses, from its options and its store."""

import platform
from collections.abc import Mapping

from builder.compile_cache import shared
from builder.compile_cache.caches import Caches
from builder.compile_cache.folder import Folder
from builder.compile_cache.options import CacheOptions
from builder.store import COMPILED, Store


def caches_of(options: CacheOptions, store: Store, *, writable: bool, environ: Mapping[str, str]) -> Caches:
    """Return the caches of a run; `writable` is whether the store is. Nothing is asked of a server yet.

    Raises:
        BuilderError: the URL of the shared cache is not one of a cache.
    """
    return Caches(
        local=Folder(root=store.root / COMPILED, limit=options.limit, distrusts=store.stranger),
        writable=writable,
        shared=None if options.url is None else shared.at(options.url, environ=environ),
        access=options.access,
        writer=platform.node(),
    )
