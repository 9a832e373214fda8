"""Fetch a file, or a part of one, from a server or a folder, and keep fetched trees in a store.

The callers verify the content.
"""

import contextlib
import http.client
import os
import shutil
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from builder.errors import ToolError
from builder.run import Processes
from builder.store import Store, StoreError

_SECONDS = 60
"""The most seconds that a server may be silent."""
_LONGEST = 3600
"""The most seconds that a file may take."""
_TURN = 0.1
_LARGEST = 4 << 30
"""The most bytes of a file."""
_CHUNK = 1 << 18
_PROXIES = ("http", "https")


class UnreachableError(ToolError):
    """A server or folder that does not answer, or does not have the file."""


def download(place: str, target: Path, *, environ: Mapping[str, str], processes: Processes, remedy: str) -> None:
    """Copy a URL or an absolute path to `target`; `remedy` is the help text of a failure.

    Raises:
        UnreachableError: the file cannot be fetched.
        ToolError: the file is too large, or the command was stopped.
        OSError: `target` cannot be written.
    """
    reason = ""
    if not place.startswith("/"):
        ended: list[str] = []
        in_time = unless_stopped(
            lambda: ended.append(_fetch(place, target, environ)), processes=processes, what=place, seconds=_LONGEST
        )
        reason = ended[0] if in_time else f"it took longer than {_LONGEST // 60} minutes"
    elif Path(place).is_file():
        shutil.copyfile(place, target)
    else:
        reason = "there is no such file"
    if reason:
        raise UnreachableError(f"cannot fetch {place}: {reason}", help=remedy)


def _fetch(place: str, target: Path, environ: Mapping[str, str]) -> str:
    """Fetch a file from a server; return the reason if that fails.

    A reason and not an exception: as the cause of another exception, it would keep the connection open.
    """
    try:
        with opener(environ).open(place, timeout=_SECONDS) as answer, target.open("wb") as file:
            size = 0
            while chunk := answer.read(_CHUNK):
                size += len(chunk)
                if size > _LARGEST:
                    raise ToolError(f"{place} is larger than {_LARGEST >> 30} GiB", help="name another archive")
                file.write(chunk)
    except urllib.error.HTTPError as error:
        return f"the server answers {error.code} {error.reason}"
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__
    return ""


def unless_stopped(work: Callable[[], None], *, processes: Processes, what: str, seconds: float | None = None) -> bool:
    """Run `work` in a thread, which is abandoned if the command is stopped; return whether it ended within `seconds`.

    A thread that waits for a silent server cannot notice that the command is stopped.

    Raises:
        ToolError: the command was stopped.
        Exception: whatever `work` raises.
    """
    failed: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  raised again by the thread that waits
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = None if seconds is None else time.monotonic() + seconds
    while thread.is_alive():
        thread.join(_TURN)
        if processes.cancelled:
            raise ToolError(f"stopped while {what} was fetched")
        if deadline is not None and time.monotonic() > deadline:
            return False
    if failed:
        raise failed[0]
    return True


def opener(environ: Mapping[str, str]) -> urllib.request.OpenerDirector:
    """Return a client for http and https only, with the user's proxies and certificates."""
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
    """Return some bytes of a file on a server, and the file's size; None if the server does not support ranges.

    Raises:
        OSError: the server is slow or does not answer.
    """
    request = urllib.request.Request(address, headers={"Range": f"bytes={first}-{last}"})  # noqa: S310  the opener knows http alone
    with client.open(request, timeout=_SECONDS) as answer:
        size = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if answer.status != HTTPStatus.PARTIAL_CONTENT or not size.isdigit():
            return None
        return answer.read(last - first + 1), int(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """Fetches trees into a store, by a user's settings; several threads and processes may ask for the same tree."""

    store: Store
    environ: Mapping[str, str]
    progress: Callable[[str], None]
    processes: Processes = field(default_factory=Processes)
    """Stopping these also stops fetching, and waiting for another process that fetches."""

    def tree(
        self,
        section: str,
        name: str,
        *,
        called: str,
        is_right: Callable[[Path], bool],
        fetch: Callable[[Path], Path],
    ) -> Path:
        """Return the verified folder of a tree; fetch the tree if the store lacks it.

        Args:
            section: The folder of the store for this kind of tree.
            name: The name of the tree in that folder, which identifies its content: mostly a hash.
            called: Its name in messages, such as `the foreign source 'cutlass'`.
            is_right: Tells whether a folder has the right content; an OSError or a ToolError counts as no.
            fetch: Gets an empty folder to work in, and returns the right tree inside it.

        Raises:
            StoreError: the store cannot be written, or does not trust the owner of the existing tree.
        """
        folder = self.store.root / section / name
        if self._verified(folder, called, is_right):
            return folder
        with kept_in(folder.parent, called):
            self.store.prepare()
            folder.parent.mkdir(exist_ok=True)
            with self.store.lock(f"{section}-{name}", give_up=lambda: self.processes.cancelled):
                if not self._verified(folder, called, is_right):
                    with self.store.scratch() as scratch:
                        fresh = fetch(scratch)
                        fresh.chmod(0o775 if self.store.shared else 0o755)
                        shutil.rmtree(folder, ignore_errors=True)  # a damaged tree
                        fresh.rename(folder)
        return folder

    def _verified(self, folder: Path, called: str, is_right: Callable[[Path], bool]) -> bool:
        """Whether the tree exists and is undamaged."""
        try:
            stranger = self.store.stranger(folder)
            right = stranger is None and is_right(folder)
        except (OSError, ToolError, ValueError, KeyError, TypeError):
            return False
        if stranger is not None:
            raise StoreError(
                f"{called} at '{folder}': not used, since {stranger}",
                help="remove it, or name another store with --store or BUILDER_STORE",
            )
        if right:
            with contextlib.suppress(OSError):  # another user's store, or a read-only one
                os.utime(folder)  # the time of the last use
        return right


@contextlib.contextmanager
def kept_in(folder: Path, called: str) -> Iterator[None]:
    """Turn an OSError into a message that says what the store could not keep, and why.

    Raises:
        StoreError: the folder, or a file below it, cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot keep {called} in '{folder}': {error.strerror}",
            help="free the disk, or name a store that you may write to with --store or BUILDER_STORE",
        ) from error
