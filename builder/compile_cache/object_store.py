"""A cache in S3 or a compatible store; credentials and endpoint come from the usual AWS variables."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from builder.compile_cache.folder import CERTIFY, UNVERIFIED, CacheError, Entry
from builder.errors import BuilderError

T = TypeVar("T")
_FOLDER = "compiled-1"
_SECONDS = 10.0
"""The most seconds to wait for an answer: a longer wait costs more than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """Entries in a bucket, whose lifecycle rules remove old ones.

    Raises:
        CacheError: the store does not answer, or refuses.
    """

    name: str
    store: S3Store

    def check(self, *, write: bool) -> None:
        """Check whether the bucket can be read, and written if `write` is set."""
        self._ask(lambda: next(iter(obstore.list(self.store, prefix=_FOLDER, chunk_size=1)), None))
        if write:
            self._ask(lambda: obstore.put(self.store, f"{_FOLDER}/check", b""))

    def get(self, key: str) -> Entry | None:
        """Return an entry."""
        try:
            content = self._ask(lambda: obstore.get(self.store, _path(key)).bytes().to_bytes())
        except FileNotFoundError:
            return None
        return Entry.from_bytes(content, key)

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry."""
        self._ask(lambda: obstore.put(self.store, _path(key), entry.to_bytes(key)))

    def _ask(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise CacheError(
                f"wrong credentials, or no right to do this: {_first_line(error)}",
                help="look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; to read alone: --cache-access read",
            ) from error
        except (BaseError, OSError) as error:
            if "NoSuchBucket" in str(error):
                raise CacheError("there is no such bucket", help="make it, or look at its name") from error
            if isinstance(error, FileNotFoundError):
                raise
            raise _failed(error) from error


def _failed(error: Exception) -> CacheError:
    """Turn a failed request into an error; the library puts the reason only into the details."""
    details = str(error)
    if "InvalidCertificate" in details:
        return CacheError(UNVERIFIED, help=CERTIFY)
    remedy = "look at AWS_ENDPOINT_URL and AWS_REGION, or build with --no-cache"
    if "kind: Connect" in details:
        return CacheError("cannot connect to it", help=remedy)
    if "kind: Timeout" in details:
        return CacheError(f"it did not answer in {_SECONDS:.0f} seconds", help=remedy)
    return CacheError(_first_line(error), help=remedy)


def _path(key: str) -> str:
    return f"{_FOLDER}/{key[:2]}/{key}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def at(url: str, *, name: str, endpoint: str | None) -> ObjectStore:
    """Return the cache at `s3://BUCKET/PREFIX`; `endpoint` is from AWS_ENDPOINT_URL. No request is sent yet.

    Raises:
        BuilderError: the URL is not that of a bucket.
    """
    plain = endpoint is not None and endpoint.startswith("http://")
    try:
        store = S3Store.from_url(
            url,
            client_options={"timeout": f"{_SECONDS:.0f}s", "connect_timeout": "5s", "allow_http": plain},
            retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=_SECONDS)},
        )
    except (BaseError, ValueError) as error:
        raise BuilderError(
            f"'{name}' is no URL of a bucket: {_first_line(error)}", help="write s3://BUCKET/PREFIX"
        ) from error
    return ObjectStore(name=name, store=store)
