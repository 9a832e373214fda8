"""A tree that was fetched into a store: fetched once, verified each time it is used, replaced where it is damaged."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.errors import ToolError
from builder.run import Processes
from builder.store import Store, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedTree:
    """A folder of a store, which several processes may ask for at once."""

    store: Store
    section: str
    """The folder of the store for what is of its kind."""
    name: str
    """Its own name in there, which says what it has: a hash, mostly."""
    called: str
    """What a message calls it, such as `the foreign source 'cutlass'`."""
    is_right: Callable[[Path], bool]
    """Whether a folder has what was fetched; one that it cannot read, or that raises ToolError, has not."""

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        return self.store.root / self.section / self.name

    def get(self, fetch: Callable[[Path], Path], processes: Processes) -> Path:
        """Return its folder with the tree, fetched if it is not there.

        Args:
            fetch: Is given an empty folder to work in, and returns the tree that it made there, which is right.
            processes: Those of the build: when they are stopped, so is the wait for another process that fetches it.

        Raises:
            StoreError: the store cannot be written, or does not trust who made the tree that is there.
        """
        if self._verified():
            return self.folder
        with kept_in(self.folder.parent, self.called):
            self.store.prepare()
            self.folder.parent.mkdir(exist_ok=True)
            with self.store.lock(f"{self.section}-{self.name}", give_up=lambda: processes.cancelled):
                if not self._verified():
                    with self.store.scratch() as scratch:
                        self._put(fetch(scratch))
        return self.folder

    def _verified(self) -> bool:
        """Whether the tree is there as it was fetched; a damaged one counts as none."""
        try:
            stranger = self.store.stranger(self.folder)
            right = stranger is None and self.is_right(self.folder)
        except (OSError, ToolError, ValueError, KeyError, TypeError):
            return False
        if stranger is not None:
            raise StoreError(
                f"{self.called} at '{self.folder}': not used, since {stranger}",
                help="remove it, or name another store with --store or BUILDER_STORE",
            )
        if right:
            with contextlib.suppress(OSError):  # another user's, or a store that is only read
                os.utime(self.folder)  # when it was last used
        return right

    def _put(self, fresh: Path) -> None:
        fresh.chmod(0o775 if self.store.shared else 0o755)
        shutil.rmtree(self.folder, ignore_errors=True)  # a damaged one
        fresh.rename(self.folder)


@contextlib.contextmanager
def kept_in(folder: Path, called: str) -> Iterator[None]:
    """Say what could not be kept in a folder of the store, and why.

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
