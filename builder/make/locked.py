"""The kernels of `kernels.lock`, as a load test has them: of each, the variant that the hub's client would load."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.config import Framework
from builder.config.v5 import KernelDependency
from builder.errors import ToolError
from builder.kernel import Kernel, kernel_lock
from builder.kernel.kernel_lock import LockedCommit, LockError, named
from builder.loadtest.packages import KernelFolder
from builder.matrix import Cell
from builder.matrix.variant import Variant, fits

_BUILD = "build"
_METADATA = "metadata.json"
_LARGEST = 16 << 20
"""Bytes that a metadata.json may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTree:
    """All files of a locked kernel."""

    locked: LockedCommit
    folder: Path

    @classmethod
    def from_json(cls, listed: Iterable[Mapping[str, Any]]) -> Mapping[KernelDependency, "LockedTree"]:
        """Read what `to_json` wrote: the entries of a lock, each with its tree.

        Raises:
            LockError: an entry is not one of a lock.
        """
        entries = [(entry["tree"], {key: entry[key] for key in entry if key != "tree"}) for entry in listed]
        try:
            locks = kernel_lock.locks([entry for _, entry in entries])
        except ValueError as error:
            raise LockError(f"{kernel_lock.NAME} is not a lock of kernels: {error}", help=kernel_lock.AGAIN) from error
        trees = (Path(tree) for tree, _ in entries)
        return {
            wanted: cls(locked=locked, folder=tree) for (wanted, locked), tree in zip(locks.items(), trees, strict=True)
        }

    def to_json(self, wanted: KernelDependency) -> dict[str, Any]:
        """Return the entry of the lock, and where its tree is."""
        return {**kernel_lock.entry(wanted, self.locked), "tree": str(self.folder)}


def variants(tree: Path) -> Mapping[str, Path]:
    """Return the variants of a kernel, by their names."""
    folders = sorted((tree / _BUILD).iterdir()) if (tree / _BUILD).is_dir() else []
    return {folder.name: folder for folder in folders if (folder / _METADATA).is_file()}


def metadata(variant: Path) -> Mapping[str, Any]:
    """Read the metadata.json of a variant.

    Raises:
        LockError: it is none.
    """
    path = variant / _METADATA
    try:
        with path.open("rb") as file:
            table = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise LockError(f"'{path}' cannot be read: {error}", help="lock another commit of that kernel") from error
    if not isinstance(table, dict):
        raise LockError(f"'{path}' is not a table", help="lock another commit of that kernel")
    return table


def depends_of(variant: Path) -> tuple[KernelDependency, ...]:
    """Return what a variant of a kernel depends on.

    Raises:
        LockError: its metadata.json is none.
    """
    listed = metadata(variant).get("kernel-depends") or []
    try:
        return tuple(map(kernel_lock.dependency, listed))
    except (TypeError, ValueError) as error:
        raise LockError(
            f"'{variant / _METADATA}' has kernel-depends that are none: {error}",
            help="lock another commit of that kernel",
        ) from error


def python_depends_of(variant: Path) -> tuple[str, ...]:
    """Return the Python packages that a variant of a kernel imports.

    Raises:
        LockError: its metadata.json is none.
    """
    listed = metadata(variant).get("python-depends")
    return tuple(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else ()


def folders(kernel: Kernel, cell: Cell, tree_of: Callable[[KernelDependency], LockedTree]) -> tuple[KernelFolder, ...]:
    """Return the kernels that one depends on, of each the variant for a cell, with all that these depend on.

    Raises:
        LockError: one depends on itself, or is no kernel.
        ToolError: one has no variant for the cell.
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
        python_depends=python_depends_of(folder),
        depends=tuple(_folder(each, cell, tree_of, (*path, wanted)) for each in depends_of(folder)),
    )


def variant_for(cell: Cell, names: Iterable[str]) -> str | None:
    """Return the variant that the hub's client would load where a cell is tested: compiled ones first."""
    fitting = [(name, variant) for name in names if (variant := _parsed(name)) is not None and _serves(variant, cell)]
    return min(fitting, key=lambda each: _rank(each[1]), default=("", None))[0] or None


def _parsed(name: str) -> Variant | None:
    try:
        return Variant.parse(name)
    except ValueError:
        return None


def _serves(variant: Variant, cell: Cell) -> bool:
    if variant.framework is Framework.CTYPES or variant.system not in (None, cell.system):
        return False
    of_tvm_ffi = cell.framework is Framework.TVM_FFI
    if not variant.noarch and (variant.framework is Framework.TVM_FFI) != of_tvm_ffi:
        return False
    return variant.python in (None, cell.python) and fits(variant, torch=cell.torch, compute=cell.compute)


def _rank(variant: Variant) -> tuple[bool, bool, int, int]:
    """Order variants as the client does: for this torch, for a stable ABI, the newest first, and then pure Python."""
    version = variant.version
    newest = (0, 0) if version is None else (-version.major, -version.minor)
    return variant.noarch, variant.stable, *newest
