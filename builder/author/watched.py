"""Watch a kernel: find the files that builds and tests read, and wait until one changes."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from builder import kernel as kernels
from builder.author.tests import SETTINGS, TESTS
from builder.errors import BuilderError, ToolError
from builder.kernel.source_set import source_set
from builder.kernel.tree import TooManyFilesError, Tree

_STEP_MS, _LONGEST_MS = 50, 400
"""Events within the first time count as one; the second is the longest delay."""
_LOOK = 1.0
"""Seconds between looks at the files without an event: network file systems send none, and events get lost."""
_SETTLE = 0.05
"""Seconds without a change after which a save is complete, since editors write in several steps."""

Signature = tuple[int, int, int] | None
"""Values that change when a file is saved or replaced; None for a missing file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of a kernel at one moment."""

    root: Path
    files: Mapping[str, Signature]
    """The files that builds and tests read, by their paths in the kernel."""
    folders: Mapping[Path, Signature]
    """The folders in which such files can appear; for a missing folder, its nearest parent."""
    problem: str = ""
    """Why the files are unknown: `build.toml` cannot be read, or a file is missing."""

    @classmethod
    def of(cls, root: Path, before: "Snapshot | None" = None) -> "Snapshot":
        """Take a snapshot of a kernel; if its files are unknown, use the list in `before`."""
        tree = Tree.of(root)
        problem, sources = "", tuple(() if before is None else before.files)
        try:
            sources = source_set(kernels.load(tree.root), tree=tree).paths
        except BuilderError as error:
            problem = str(error)
        names = {kernels.CONFIG, *SETTINGS, *sources, *_tests(tree)}
        searched = (tree.root / folder for folder in _folders(names, tree))
        folders = {next(each for each in (path, *path.parents) if each.is_dir()) for path in searched}
        return cls(
            root=tree.root,
            files={name: _signature(tree.root / name) for name in sorted(names)},
            folders={folder: _signature(folder) for folder in sorted(folders)},
            problem=problem,
        )

    def changes(self, before: "Snapshot") -> tuple[str, ...]:
        """Return the files that were saved, created or removed since `before`.

        A file that exists, but is no longer listed in `build.toml`, counts as unchanged.
        """
        found = [name for name, signature in self.files.items() if signature != before.files.get(name)]
        gone = before.files.keys() - self.files.keys()
        found += sorted(name for name in gone if _signature(self.root / name) is None)
        return tuple(found) or ((kernels.CONFIG,) if self.problem != before.problem else ())

    def holds(self) -> bool:
        """Whether all files and folders are still unchanged."""
        now = {name: _signature(self.root / name) for name in self.files}
        return now == self.files and all(_signature(folder) == known for folder, known in self.folders.items())


def wait(before: Snapshot) -> Snapshot:
    """Wait until a file differs from `before`, and return the new snapshot; a file saved since then counts at once.

    Raises:
        ToolError: the library that watches files is not installed.
    """
    now = Snapshot.of(before.root, before)
    while not now.changes(before):
        _sleep(now)
        known, now = None, Snapshot.of(before.root, before)
        while now != known and now.changes(before):
            time.sleep(_SETTLE)
            known, now = now, Snapshot.of(before.root, before)
    return now


def _sleep(now: Snapshot) -> None:
    """Wait until something may have changed."""
    try:
        import watchfiles  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise ToolError("watching files needs watchfiles", help="python -m pip install watchfiles") from error
    try:
        events = watchfiles.watch(
            *now.folders,
            watch_filter=None,
            recursive=False,
            step=_STEP_MS,
            debounce=_LONGEST_MS,
            rust_timeout=int(_LOOK * 1000),
            yield_on_timeout=True,
        )
        for _ in events:
            if now.problem or not now.holds():
                return
    except (OSError, RuntimeError):
        # A folder was just removed, or the system refuses to watch more folders: look again later.
        time.sleep(_LOOK)


def _tests(tree: Tree) -> Iterator[str]:
    try:
        found = tree.walk(TESTS)
    except TooManyFilesError:
        return
    for name in found:
        path = PurePosixPath(name)
        # Skip backup files of editors and Python's bytecode.
        if "__pycache__" not in path.parts and not path.name.endswith("~") and not path.name.startswith("#"):
            yield name


def _folders(names: set[str], tree: Tree) -> set[str]:
    """Return the folders of these files, and the folders that were searched for files."""
    found = {""}
    for start in (*(name.rpartition("/")[0] for name in names), *tree.entered):
        folder = start
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _signature(path: Path) -> Signature:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
