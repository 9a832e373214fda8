"""Fetch a file, or a part of one, from a server or a folder; its callers verify what it contains."""

import http.client
import shutil
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from builder.errors import BuilderError, ToolError
from builder.run import Processes

_SECONDS = 60
"""How long a server may be silent."""
_LONGEST = 3600
"""Seconds that a file may take."""
_TURN = 0.1
_LARGEST = 4 << 30
"""Bytes that a file may have."""
_CHUNK = 1 << 18
_PROXIES = ("http", "https")


class UnreachableError(ToolError):
    """A place does not answer, or does not have the file."""


def download(place: str, target: Path, *, environ: Mapping[str, str], processes: Processes, remedy: str) -> None:
    """Write what a URL or an absolute path names to `target`; `remedy` says what to do where that fails.

    Raises:
        UnreachableError: it cannot be fetched.
        ToolError: it is too large, or the command was stopped.
        OSError: `target` cannot be written.
    """
    if place.startswith("/"):
        if not Path(place).is_file():
            raise _unreachable(place, "there is no such file", remedy)
        shutil.copyfile(place, target)
        return
    # A server may be silent for long, and a thread that waits for it does not notice that the command is stopped.
    failed: list[BuilderError] = []
    thread = threading.Thread(target=_fetch, args=(place, target, environ, remedy, failed), daemon=True)
    thread.start()
    deadline = time.monotonic() + _LONGEST
    while thread.is_alive():
        thread.join(_TURN)
        if processes.cancelled:
            raise ToolError(f"stopped while {place} was fetched")
        if time.monotonic() > deadline:
            raise _unreachable(place, f"it took longer than {_LONGEST // 60} minutes", remedy)
    if failed:
        raise failed[0]


def _fetch(place: str, target: Path, environ: Mapping[str, str], remedy: str, failed: list[BuilderError]) -> None:
    """Write what a server has into a file; what went wrong is added to `failed`."""
    try:
        with opener(environ).open(place, timeout=_SECONDS) as answer, target.open("wb") as file:
            size = 0
            while chunk := answer.read(_CHUNK):
                size += len(chunk)
                if size > _LARGEST:
                    failed.append(
                        ToolError(f"{place} is larger than {_LARGEST >> 30} GiB", help="name another archive")
                    )
                    return
                file.write(chunk)
    except urllib.error.HTTPError as error:
        failed.append(_unreachable(place, f"the server answers {error.code} {error.reason}", remedy))
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = str(error.reason if isinstance(error, urllib.error.URLError) else error)
        failed.append(_unreachable(place, reason, remedy))


def opener(environ: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """Return a client of http and https alone, with the proxies and the certificates of the user."""
    everywhere = environ.get("all_proxy") or environ.get("ALL_PROXY")
    named = {name: environ.get(f"{name}_proxy") or environ.get(f"{name}_proxy".upper()) for name in _PROXIES}
    proxies = {name: value or everywhere for name, value in named.items()}
    result = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler({name: value for name, value in proxies.items() if value}),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=environ.get("SSL_CERT_FILE"))),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        result.add_handler(handler)
    result.addheaders = [("User-Agent", "kernel-wheel-builder")]
    return result


def part_of(address: str, first: int, last: int, *, client: urllib.request.OpenerDirector) -> tuple[bytes, int] | None:
    """Return bytes of a file on a server, and the size of the file; None where the server gives no parts of files.

    Raises:
        OSError: the server is slow or away.
    """
    request = urllib.request.Request(address, headers={"Range": f"bytes={first}-{last}"})  # noqa: S310  the opener knows http alone
    with client.open(request, timeout=_SECONDS) as answer:
        size = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if answer.status != HTTPStatus.PARTIAL_CONTENT or not size.isdigit():
            return None
        return answer.read(last - first + 1), int(size)


def _unreachable(place: str, reason: str, remedy: str) -> UnreachableError:
    return UnreachableError(f"cannot fetch {place}: {reason}", help=remedy)
