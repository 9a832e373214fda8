"""A cache in Redis or a compatible server, such as Valkey."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import redis

from builder.compile_cache.folder import CERTIFY, UNVERIFIED, CacheError, Entry
from builder.errors import BuilderError

_PREFIX = "builder:compiled:1:"
_DATABASE = re.compile(r"(?:/[0-9]{0,9})?", re.ASCII)
_SPELLING = "write redis://HOST:PORT/NUMBER"
_SECONDS = 5.0
"""The most seconds to wait for an answer: a longer wait costs more than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisServer:
    """Entries in Redis; its own configuration decides which ones it removes.

    Raises:
        CacheError: the server does not answer, or refuses.
    """

    name: str
    client: Any

    def check(self, *, write: bool) -> None:
        """Check whether the server answers, and accepts entries if `write` is set."""
        self._ask("get", f"{_PREFIX}check")
        if write:
            self._ask("set", f"{_PREFIX}check", b"")

    def get(self, key: str) -> Entry | None:
        """Return an entry."""
        content = self._ask("get", _PREFIX + key)
        return None if content is None else Entry.from_bytes(content, key)

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry."""
        self._ask("set", _PREFIX + key, entry.to_bytes(key))

    def _ask(self, command: str, *arguments: object) -> Any:
        try:
            return getattr(self.client, command)(*arguments)
        except (redis.AuthenticationError, redis.exceptions.AuthenticationWrongNumberOfArgsError) as error:
            raise CacheError(
                f"wrong credentials: {error}", help="look at the user and the password in its URL"
            ) from error
        except (redis.exceptions.NoPermissionError, redis.ReadOnlyError) as error:
            raise CacheError(f"it takes no entries: {error}", help="read from it alone: --cache-access read") from error
        except redis.RedisError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise CacheError(UNVERIFIED, help=CERTIFY) from error
            raise CacheError(str(error), help="start it, or build with --no-cache") from error


def at(url: str, *, name: str) -> RedisServer:
    """Return the cache at a URL such as `redis://user:password@host:6379/0`; no request is sent yet.

    Raises:
        BuilderError: the URL is not one of Redis.
    """
    if not _DATABASE.fullmatch(urlsplit(url).path):
        raise BuilderError(f"'{name}' is no URL of Redis", help=_SPELLING)
    try:
        client = redis.Redis.from_url(
            url,
            socket_connect_timeout=_SECONDS,
            socket_timeout=_SECONDS,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        )
    except ValueError as error:
        raise BuilderError(f"'{name}' is no URL of Redis: {error}", help=_SPELLING) from error
    return RedisServer(name=name, client=client)
