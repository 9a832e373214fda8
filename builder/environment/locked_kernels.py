"""The kernels that a kernel depends on: locked with all that they depend on, fetched once, verified each time."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from builder.config.v5 import KernelDependency
from builder.environment.fetched_tree import FetchedTree, kept_in
from builder.environment.kernel_source import KernelSource
from builder.errors import BuilderError, ToolError, WrongHashError
from builder.hashes import nar
from builder.kernel import Kernel, kernel_lock
from builder.kernel.kernel_lock import LockedCommit, LockError, Locks, named
from builder.make.locked import LockedTree, depends_of, variants
from builder.run import Processes
from builder.store import KERNELS, Store

_TURN = 0.1
"""Seconds after which a fetch looks whether it is to stop."""


def depends(kernel: Kernel) -> tuple[KernelDependency, ...]:
    """Return what a kernel depends on, on any of its backends.

    Raises:
        LockError: the name of a repository cannot be one of the hub.
    """
    found = (each for backend in kernel.config.general.backends for each in kernel.config.kernel_depends(backend))
    try:
        return tuple(dict.fromkeys(map(kernel_lock.checked, found)))
    except ValueError as error:
        raise LockError(str(error), help="correct 'repo-id' in kernel-depends of build.toml") from error


def is_kept(store: Store, locked: LockedCommit) -> bool:
    """Whether a store has a locked kernel; whether it is whole is told where it is used."""
    return (store.root / KERNELS / locked.digest).is_dir()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedKernels:
    """The kernels of a store, each in a folder that is named by its hash; several threads may ask."""

    store: Store
    source: KernelSource
    progress: Callable[[str], None]
    processes: Processes = field(default_factory=Processes)

    def lock(self, wanted: Iterable[KernelDependency]) -> Locks:
        """Return the commit and the hash of each kernel, and of all that these depend on.

        Raises:
            LockError: a kernel depends on itself.
            ToolError: one cannot be fetched.
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
        self.progress(f"fetching {named(wanted)} at {commit}")
        locked = self._lock_commit(wanted.repo_id, commit)
        for each in _needs(self.store.root / KERNELS / locked.digest):
            self._lock(each, found, (*path, wanted))
        found[wanted] = locked

    def needed(self, wanted: Iterable[KernelDependency], locks: Locks) -> Locks:
        """Return the part of a lock that kernels need; each is verified.

        Raises:
            LockError: one is not locked.
            ToolError: one cannot be fetched, or is not what the lock says.
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
        """Return a locked kernel, fetched if it is not there, and verified.

        Raises:
            LockError: it is not locked.
            ToolError: it cannot be fetched, or is not what the lock says.
        """
        locked = kernel_lock.of(wanted, locks)

        def fetch(scratch: Path) -> Path:
            self.progress(f"fetching {named(wanted)} at {locked.short}")
            fresh, found = self._fetched(wanted.repo_id, locked.commit, scratch)
            if found.hash != locked.hash:
                raise WrongHashError(
                    f"commit {locked.commit} of '{wanted.repo_id}' is not what {kernel_lock.NAME} names\n"
                    f"      expected {locked.hash}\n      found    {found.hash}",
                    help="is it fetched whole? If its publisher replaced it, lock it anew: builder lock",
                )
            return fresh

        return LockedTree(locked=locked, folder=self._kept(wanted.repo_id, locked).get(fetch, self.processes))

    def _kept(self, repo_id: str, locked: LockedCommit) -> FetchedTree:
        return FetchedTree(
            store=self.store,
            section=KERNELS,
            name=locked.digest,
            called=f"the kernel '{repo_id}'",
            is_right=lambda folder: nar(folder) == locked.hash,
        )

    def _lock_commit(self, repo_id: str, commit: str) -> LockedCommit:
        """Fetch a commit and name it by its hash; what the store has under that hash stays."""
        with kept_in(self.store.root / KERNELS, f"the kernel '{repo_id}'"), self.store.scratch() as scratch:
            fresh, found = self._fetched(repo_id, commit, scratch)
            self._kept(repo_id, found).get(lambda _: fresh, self.processes)
        return found

    def _fetched(self, repo_id: str, commit: str, scratch: Path) -> tuple[Path, LockedCommit]:
        fresh = scratch / "kernel"
        fresh.mkdir()
        self._fetch(repo_id, commit, fresh)
        return fresh, LockedCommit(commit=commit, hash=nar(fresh))

    def _fetch(self, repo_id: str, commit: str, target: Path) -> None:
        """Fetch in a thread of its own: a worker that waits for a server does not notice that the build is stopped."""
        ended: list[BuilderError | OSError | None] = []
        thread = threading.Thread(
            target=_fetch_and_note, args=(self.source, repo_id, commit, target, ended), daemon=True
        )
        thread.start()
        while thread.is_alive():
            thread.join(_TURN)
            if self.processes.cancelled:
                raise ToolError(f"stopped while '{repo_id}' was fetched")
        failed = ended[0] if ended else ToolError(f"'{repo_id}' was not fetched; why is above")
        if failed is not None:
            raise failed


def _fetch_and_note(
    source: KernelSource, repo_id: str, commit: str, target: Path, ended: list[BuilderError | OSError | None]
) -> None:
    """Fetch a commit, and note how that ended."""
    try:
        source.fetch(repo_id, commit, target)
    except (BuilderError, OSError) as error:
        ended.append(error)
    else:
        ended.append(None)


def _needs(tree: Path) -> list[KernelDependency]:
    """Return what any variant of a kernel depends on."""
    found = (each for variant in variants(tree).values() for each in depends_of(variant))
    return list(dict.fromkeys(found))
