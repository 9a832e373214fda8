"""`kernels.lock`: the commit and the hash of each kernel that a kernel depends on, in the form of the public tools."""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from builder.config.v5 import KernelDependency
from builder.errors import BuilderError
from builder.wording import quoted

NAME: Final = "kernels.lock"
_LARGEST = 16 << 20
"""Bytes that a lock may have; one of a hundred kernels has a thousandth."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_SHA256 = 32
AGAIN: Final = "write it anew: builder lock"


class LockError(BuilderError):
    """A lock that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedCommit:
    """The commit that a dependency stands for, and the hash of all its files."""

    commit: str
    hash: str
    """`sha256-<base64>` of the folder, as Nix computes it."""

    @property
    def short(self) -> str:
        """The commit, as people write it."""
        return self.commit[:7]

    @property
    def digest(self) -> str:
        """The hash in hexadecimal digits, as a name of a folder."""
        return base64.b64decode(self.hash.partition("-")[2]).hex()


Locks = Mapping[KernelDependency, LockedCommit]
_Locked = TypeVar("_Locked")


def read(root: Path) -> Locks | None:
    """Read the lock of a kernel's directory; None where it has none.

    Raises:
        LockError: it cannot be read, or is not in the form of the public tools.
    """
    path = root / NAME
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LockError(f"cannot read '{path}': {error.strerror}", help=AGAIN) from error
    try:
        return parse(content)
    except ValueError as error:
        raise LockError(f"'{path}' is not a lock of kernels: {error}", help=AGAIN) from error


def parse(content: bytes) -> Locks:
    """Parse the text of a lock.

    Raises:
        ValueError: it is not one.
    """
    if len(content) > _LARGEST:
        raise ValueError("it is larger than any lock is")
    try:
        entries = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(entries, list):
        raise ValueError("it is not a list")  # noqa: TRY004  every fault of the text is a ValueError
    return locks(entries)


def locks(entries: Iterable[Any]) -> Locks:
    """Read the entries of a lock.

    Raises:
        ValueError: one is none.
    """
    found: dict[KernelDependency, LockedCommit] = {}
    for each in entries:
        if not isinstance(each, dict) or each.keys() != {"dependency", "lock"}:
            raise ValueError("an entry has not the keys 'dependency' and 'lock'")
        key = dependency(each["dependency"])
        if key in found:
            raise ValueError(f"{named(key)} is there twice")
        found[key] = _locked(each["lock"], key)
    return found


def dependency(table: Any) -> KernelDependency:
    """Read a dependency, as a lock and metadata.json have it.

    Raises:
        ValueError: it is not one.
    """
    repo_id = table.get("repo-id") if isinstance(table, dict) else None
    if not isinstance(repo_id, str) or table.keys() not in ({"repo-id", "version"}, {"repo-id", "revision"}):
        raise ValueError("a dependency has not the keys 'repo-id', and 'version' or 'revision'")
    version, revision = table.get("version"), table.get("revision")
    if revision is None and (isinstance(version, bool) or not isinstance(version, int) or version < 0):
        raise ValueError(f"the version of {quoted(repo_id)} is not a number")
    if version is None and not isinstance(revision, str):
        raise ValueError(f"the revision of {quoted(repo_id)} is not a string")
    return checked(KernelDependency(repo_id=repo_id, version=version, revision=revision))


def checked(wanted: KernelDependency) -> KernelDependency:
    """Return a dependency whose repository can be one of the hub.

    Raises:
        ValueError: it cannot be one.
    """
    if _REPOSITORY.fullmatch(wanted.repo_id) is None:
        raise ValueError(f"{quoted(wanted.repo_id)} is not a repository of the hub, which is OWNER/NAME")
    return wanted


def _locked(table: Any, key: KernelDependency) -> LockedCommit:
    if not isinstance(table, dict) or table.keys() - {"commit", "hash"}:
        raise ValueError(f"the lock of {named(key)} has not the keys 'commit' and 'hash'")
    commit, sri = table.get("commit"), table.get("hash")
    if not isinstance(commit, str) or _COMMIT.fullmatch(commit) is None:
        raise ValueError(f"the lock of {named(key)} names no whole commit")
    if sri is None:
        raise ValueError(f"the lock of {named(key)} has no hash, which `kernels lock` leaves out")
    if not isinstance(sri, str) or not _is_sha256(sri):
        raise ValueError(f"the hash of {named(key)} is not 'sha256-' and the base64 of 32 bytes")
    return LockedCommit(commit=commit, hash=sri)


def _is_sha256(sri: str) -> bool:
    kind, _, text = sri.partition("-")
    try:
        return kind == "sha256" and len(base64.b64decode(text, validate=True)) == _SHA256
    except (binascii.Error, ValueError):
        return False


def of(wanted: KernelDependency, locked: Mapping[KernelDependency, _Locked]) -> _Locked:
    """Return what is locked for a dependency.

    Raises:
        LockError: nothing.
    """
    if wanted not in locked:
        raise LockError(f"{named(wanted)} is not in {NAME}", help="lock it: builder lock")
    return locked[wanted]


def entry(wanted: KernelDependency, locked: LockedCommit) -> dict[str, Any]:
    """Return an entry of a lock."""
    return {"dependency": table(wanted), "lock": {"commit": locked.commit, "hash": locked.hash}}


def dump(locks: Locks) -> bytes:
    """Return the text of a lock: its entries in one order, whoever wrote it."""
    entries = [entry(key, locks[key]) for key in ordered(locks)]
    return (json.dumps(entries, indent=2, ensure_ascii=False) + "\n").encode()


def table(wanted: KernelDependency) -> dict[str, Any]:
    """Return a dependency as a lock and metadata.json have it."""
    if wanted.revision is not None:
        return {"repo-id": wanted.repo_id, "revision": wanted.revision}
    return {"repo-id": wanted.repo_id, "version": wanted.version}


def ordered(among: Iterable[KernelDependency]) -> list[KernelDependency]:
    """Return dependencies by repository, versions before revisions."""
    return sorted(
        among, key=lambda each: (each.repo_id.encode(), each.version is None, each.version or 0, each.revision or "")
    )


def named(wanted: KernelDependency) -> str:
    """Return what a message calls a dependency."""
    which = f"revision {wanted.revision}" if wanted.version is None else f"version {wanted.version}"
    return f"{quoted(wanted.repo_id)} ({which})"
