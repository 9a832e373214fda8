"""Lock, fetch and verify the kernels that a kernel depends on, directly or indirectly."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from builder.config.v5 import KernelDependency
from builder.environment import kernel_source
from builder.environment.download import Fetching, kept_in, unless_stopped
from builder.environment.kernel_source import KernelSource
from builder.errors import NotHereError, ToolError, WrongHashError
from builder.hashes import nar
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder
from builder.make import kernel_lock
from builder.make.kernel_lock import LockedCommit, LockedTree, LockError, Locks, depends_of, named, variants
from builder.matrix import Cell
from builder.store import KERNELS, Store


def depends(kernel: Kernel) -> tuple[KernelDependency, ...]:
    """Return the dependencies of a kernel, on all of its backends.

    Raises:
        LockError: the name of a repository is invalid.
    """
    found = (each for backend in kernel.config.general.backends for each in kernel.config.kernel_depends(backend))
    try:
        return tuple(dict.fromkeys(map(kernel_lock.checked, found)))
    except ValueError as error:
        raise LockError(str(error), help="correct 'repo-id' in kernel-depends of build.toml") from error


def is_kept(store: Store, locked: LockedCommit) -> bool:
    """Whether a store has a locked kernel; using the kernel verifies it."""
    return (store.root / KERNELS / locked.digest).is_dir()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedKernels:
    """The kernels in a store, each in a folder named by its hash; several threads may use it."""

    fetching: Fetching
    source: KernelSource

    def lock(self, wanted: Iterable[KernelDependency]) -> Locks:
        """Return the commit and the hash of each kernel and of its dependencies.

        Raises:
            LockError: a kernel depends on itself.
            ToolError: a kernel cannot be fetched.
        """
        found: dict[KernelDependency, LockedCommit] = {}
        for each in wanted:
            self._lock(each, found, ())
        return found

    def _lock(
        self, wanted: KernelDependency, found: dict[KernelDependency, LockedCommit], path: tuple[KernelDependency, ...]
    ) -> None:
        if wanted in path:
            circle = " → ".join(map(named, (*path[path.index(wanted) :], wanted)))
            raise LockError(f"kernels depend on each other in a circle: {circle}", help="no client loads these")
        if wanted in found:
            return
        commit = self.source.commit(wanted)
        self.fetching.progress(f"fetching {named(wanted)} at {commit}")
        store, called = self.fetching.store, f"the kernel '{wanted.repo_id}'"
        with kept_in(store.root / KERNELS, called), store.scratch() as scratch:
            fresh, locked = self._fetched(wanted.repo_id, commit, scratch)
            tree = self._kept(wanted.repo_id, locked, lambda _: fresh)  # an existing tree with this hash stays
        for each in _needs(tree):
            self._lock(each, found, (*path, wanted))
        found[wanted] = locked

    def needed(self, wanted: Iterable[KernelDependency], locks: Locks) -> Locks:
        """Return the part of a lock that these kernels need, and verify each tree.

        Raises:
            LockError: a kernel is not locked.
            ToolError: a kernel cannot be fetched, or does not have the locked hash.
        """
        found: dict[KernelDependency, LockedCommit] = {}
        todo = list(wanted)
        while todo:
            each = todo.pop()
            if each not in found:
                tree = self.tree(each, locks)
                found[each] = tree.locked
                todo += _needs(tree.folder)
        return found

    def tree(self, wanted: KernelDependency, locks: Locks) -> LockedTree:
        """Return a locked and verified kernel; fetch it if the store lacks it.

        Raises:
            LockError: the kernel is not locked.
            ToolError: the kernel cannot be fetched, or does not have the locked hash.
        """
        locked = kernel_lock.of(wanted, locks)

        def fetch(scratch: Path) -> Path:
            self.fetching.progress(f"fetching {named(wanted)} at {locked.short}")
            fresh, found = self._fetched(wanted.repo_id, locked.commit, scratch)
            if found.hash != locked.hash:
                raise WrongHashError(
                    f"commit {locked.commit} of '{wanted.repo_id}' is not what {kernel_lock.NAME} names\n"
                    f"      expected {locked.hash}\n      found    {found.hash}",
                    help="is it fetched whole? If its publisher replaced it, lock it anew: builder lock",
                )
            return fresh

        return LockedTree(locked=locked, folder=self._kept(wanted.repo_id, locked, fetch))

    def _kept(self, repo_id: str, locked: LockedCommit, fetch: Callable[[Path], Path]) -> Path:
        return self.fetching.tree(
            KERNELS,
            locked.digest,
            called=f"the kernel '{repo_id}'",
            is_right=lambda folder: nar(folder) == locked.hash,
            fetch=fetch,
        )

    def _fetched(self, repo_id: str, commit: str, scratch: Path) -> tuple[Path, LockedCommit]:
        fresh = scratch / "kernel"
        fresh.mkdir()
        fetch = partial(self.source.fetch, repo_id, commit, fresh)
        unless_stopped(fetch, processes=self.fetching.processes, what=f"'{repo_id}'")
        return fresh, LockedCommit(commit=commit, hash=nar(fresh))


def _needs(tree: Path) -> list[KernelDependency]:
    """Return the dependencies of all variants of a kernel."""
    found = (each for variant in variants(tree).values() for each in depends_of(variant))
    return list(dict.fromkeys(found))


def keeper(fetching: Fetching, *, folder: Path | None = None) -> LockedKernels:
    """Return the locked kernels of a store, with the source to fetch them from: `folder`, or the user's setting."""
    return LockedKernels(fetching=fetching, source=kernel_source.named_by(fetching.environ, folder=folder))


def folders(kernel: Kernel, cell: Cell, keeper: LockedKernels) -> tuple[KernelFolder, ...]:
    """Return the verified kernels that a kernel's lock has for a cell; empty without a lock.

    Raises:
        LockError: the lock cannot be used, or lacks a kernel.
        ToolError: a kernel cannot be fetched, does not have the locked hash, or has no variant for the cell.
    """
    locks = kernel_lock.read(kernel.root)
    if locks is None:
        return ()
    try:
        return kernel_lock.folders(kernel, cell, lambda wanted: keeper.tree(wanted, locks))
    except NotHereError as error:
        raise ToolError(error.message, help=error.help) from error


def bring_to_nix(
    kernel: Kernel, wanted: Mapping[str, Path], *, keeper: LockedKernels, add: Callable[[Path], None]
) -> None:
    """Fetch and verify the locked kernels that Nix's store lacks, and add them.

    Args:
        kernel: The kernel with the lock.
        wanted: digest -> place in Nix's store.
        keeper: The locked kernels of the store.
        add: Adds a folder to Nix's store.

    Raises:
        LockError: the lock cannot be used.
        ToolError: a kernel cannot be fetched, does not have the locked hash, or Nix does not accept it.
    """
    for dependency, locked in (kernel_lock.read(kernel.root) or {}).items():
        place = wanted.get(locked.digest)
        if place is None or place.exists():
            continue
        try:
            tree = keeper.tree(dependency, {dependency: locked})
        except NotHereError as error:
            raise ToolError(error.message, help=error.help) from error
        with keeper.fetching.store.use(f"{KERNELS}-{locked.digest}"):
            add(tree.folder)
        if not place.exists():
            raise ToolError(
                f"{named(dependency)} is not at '{place}' after it was added",
                help="was its folder removed meanwhile? Build again",
            )
