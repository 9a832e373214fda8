"""`kernels.lock`: the commit and the hash of each kernel that a kernel depends on.

The file has the form that the public tools use. A load test gets the variant of each locked kernel that the hub's
client would load.
"""

import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from builder import json_text
from builder.config import Framework
from builder.config.v5 import KernelDependency
from builder.errors import BuilderError, ToolError
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder
from builder.matrix import Cell
from builder.matrix.variant import Variant, fits
from builder.metadata import METADATA_FILE, KernelMetadata, dependency_table
from builder.untrusted import UntrustedError
from builder.wording import quoted

T = TypeVar("T")
NAME: Final = "kernels.lock"
_BUILD = "build"
_LARGEST = 16 << 20
"""The most bytes of a lock or a metadata.json; the lock of a hundred kernels has a thousandth of that."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_SHA256 = 32
AGAIN: Final = "write it anew: builder lock"
_ANOTHER: Final = "lock another commit of that kernel"


class LockError(BuilderError):
    """A lock that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedCommit:
    """The commit of a dependency, and the hash of all its files."""

    commit: str
    hash: str
    """`sha256-<base64>` of the folder, as Nix computes it."""

    @property
    def short(self) -> str:
        """The abbreviated commit."""
        return self.commit[:7]

    @property
    def digest(self) -> str:
        """The hash in hexadecimal digits, for the name of a folder."""
        return base64.b64decode(self.hash.partition("-")[2]).hex()


Locks = Mapping[KernelDependency, LockedCommit]


def read(root: Path) -> Locks | None:
    """Read the lock in a kernel's directory; None if there is none.

    Raises:
        LockError: the lock cannot be read, or does not have the form of the public tools.
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
        ValueError: the text is not a lock.
    """
    if len(content) > _LARGEST:
        raise ValueError("it is larger than any lock is")
    try:
        entries = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(entries, list):
        raise ValueError("it is not a list")  # noqa: TRY004  every fault of the text is a ValueError
    return _locks(entries)


def _locks(entries: Iterable[Any]) -> Locks:
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
    """Parse a dependency in a lock or a metadata.json.

    Raises:
        ValueError: the table has another form.
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
    """Check that the repository of a dependency has a valid name, and return the dependency.

    Raises:
        ValueError: the name is not valid.
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
    kind, _, text = str(sri).partition("-")
    digest = b""
    with contextlib.suppress(ValueError):
        digest = base64.b64decode(text, validate=True)
    if not isinstance(sri, str) or kind != "sha256" or len(digest) != _SHA256:
        raise ValueError(f"the hash of {named(key)} is not 'sha256-' and the base64 of 32 bytes")
    return LockedCommit(commit=commit, hash=sri)


def of(wanted: KernelDependency, locked: Mapping[KernelDependency, T]) -> T:
    """Return the locked value of a dependency.

    Raises:
        LockError: the dependency is not locked.
    """
    if wanted not in locked:
        raise LockError(f"{named(wanted)} is not in {NAME}", help="lock it: builder lock")
    return locked[wanted]


def _entry(wanted: KernelDependency, locked: LockedCommit) -> dict[str, Any]:
    return {"dependency": dependency_table(wanted), "lock": {"commit": locked.commit, "hash": locked.hash}}


def dump(locks: Locks) -> bytes:
    """Return the text of a lock, with sorted entries."""
    entries = [_entry(key, locks[key]) for key in ordered(locks)]
    return json_text.document(entries, escaped=False).encode()


def ordered(among: Iterable[KernelDependency]) -> list[KernelDependency]:
    """Sort dependencies by repository, with versions before revisions."""
    return sorted(
        among, key=lambda each: (each.repo_id.encode(), each.version is None, each.version or 0, each.revision or "")
    )


def named(wanted: KernelDependency) -> str:
    """Return the name of a dependency in messages."""
    which = f"revision {wanted.revision}" if wanted.version is None else f"version {wanted.version}"
    return f"{quoted(wanted.repo_id)} ({which})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTree:
    """All files of a locked kernel."""

    locked: LockedCommit
    folder: Path


LockedTrees = Mapping[KernelDependency, LockedTree]


def write_trees(trees: LockedTrees | None) -> list[dict[str, Any]] | None:
    """Return the JSON of locked kernels: entries of a lock, each with the path of its tree."""
    if trees is None:
        return None
    return [{**_entry(wanted, tree.locked), "tree": str(tree.folder)} for wanted, tree in trees.items()]


def read_trees(listed: Iterable[Mapping[str, Any]] | None) -> LockedTrees | None:
    """Read what `write_trees` wrote.

    Raises:
        LockError: an entry has another form.
    """
    if listed is None:
        return None
    folders = [Path(entry["tree"]) for entry in listed]
    try:
        locks = _locks({key: entry[key] for key in entry if key != "tree"} for entry in listed)
    except ValueError as error:
        raise LockError(f"{NAME} is not a lock of kernels: {error}", help=AGAIN) from error
    pairs = zip(locks.items(), folders, strict=True)
    return {wanted: LockedTree(locked=locked, folder=folder) for (wanted, locked), folder in pairs}


def variants(tree: Path) -> Mapping[str, Path]:
    """Return the variants of a kernel, by name."""
    folders = sorted((tree / _BUILD).iterdir()) if (tree / _BUILD).is_dir() else []
    return {folder.name: folder for folder in folders if (folder / METADATA_FILE).is_file()}


def _metadata(variant: Path) -> KernelMetadata:
    path = variant / METADATA_FILE
    try:
        with path.open("rb") as file:
            return KernelMetadata.read(file.read(_LARGEST))
    except (OSError, UntrustedError) as error:
        raise LockError(f"'{path}' cannot be read: {error}", help=_ANOTHER) from error


def depends_of(variant: Path) -> tuple[KernelDependency, ...]:
    """Return the dependencies of a kernel's variant.

    Raises:
        LockError: its metadata.json cannot be read.
    """
    try:
        return tuple(map(dependency, _metadata(variant).kernel_depends))
    except ValueError as error:
        message = f"'{variant / METADATA_FILE}' has invalid kernel-depends: {error}"
        raise LockError(message, help=_ANOTHER) from error


def folders(kernel: Kernel, cell: Cell, tree_of: Callable[[KernelDependency], LockedTree]) -> tuple[KernelFolder, ...]:
    """Return the kernels that a kernel depends on, with their own dependencies, each in the variant for a cell.

    Raises:
        LockError: a kernel depends on itself, or a tree is not a kernel.
        ToolError: a kernel has no variant for the cell.
    """
    return tuple(_folder(wanted, cell, tree_of, ()) for wanted in kernel.config.kernel_depends(cell.backend))


def _folder(
    wanted: KernelDependency,
    cell: Cell,
    tree_of: Callable[[KernelDependency], LockedTree],
    path: tuple[KernelDependency, ...],
) -> KernelFolder:
    if wanted in path:
        raise LockError(f"{named(wanted)} depends on itself", help="no client loads it")
    tree = tree_of(wanted)
    there = variants(tree.folder)
    chosen = variant_for(cell, there)
    if chosen is None:
        raise ToolError(
            f"{named(wanted)} at {tree.locked.short} has no variant for {cell.variant}, but "
            f"{', '.join(there) or 'none at all'}",
            help="lock a version that has one, or build without the load test: --load-test skip",
        )
    folder = there[chosen]
    return KernelFolder(
        repo_id=wanted.repo_id,
        commit=tree.locked.commit,
        folder=folder,
        python_depends=_metadata(folder).python_depends,
        depends=tuple(_folder(each, cell, tree_of, (*path, wanted)) for each in depends_of(folder)),
    )


def variant_for(cell: Cell, names: Iterable[str]) -> str | None:
    """Return the variant that the hub's client would load in the test of a cell: compiled ones are preferred."""
    fitting: dict[str, Variant] = {}
    for name in names:
        with contextlib.suppress(ValueError):  # no variant
            variant = Variant.parse(name)
            fitting |= {name: variant} if _serves(variant, cell) else {}
    return min(fitting, key=lambda name: _rank(fitting[name]), default=None)


def _serves(variant: Variant, cell: Cell) -> bool:
    if variant.framework is Framework.CTYPES or variant.system not in (None, cell.system):
        return False
    of_tvm_ffi = cell.framework is Framework.TVM_FFI
    if not variant.noarch and (variant.framework is Framework.TVM_FFI) != of_tvm_ffi:
        return False
    return variant.python in (None, cell.python) and fits(variant, torch=cell.torch, compute=cell.compute)


def _rank(variant: Variant) -> tuple[bool, bool, int, int]:
    """Order variants as the client does: for this torch, then for the newest stable ABI, then pure Python."""
    version = variant.version
    newest = (0, 0) if version is None else (-version.major, -version.minor)
    return variant.noarch, variant.stable, *newest
