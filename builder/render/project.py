"""A rendered project: files in memory, and writing them to a folder."""

import difflib
import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from builder.errors import BuilderError, DiskFullError, NothingToDoError
from builder.hashes import Hasher, sha256
from builder.wording import listed

MANIFEST = ".builder-files"
"""The list of files that a render wrote, with their sha256: a later render may replace or remove these."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Project:
    """Files of a project: relative POSIX path -> content."""

    files: Mapping[str, bytes]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", {path: self.files[path] for path in sorted(self.files)})

    def __getitem__(self, path: str) -> str:
        return self.files[path].decode("utf-8")

    @property
    def digest(self) -> str:
        """sha256 over paths and contents."""
        digest = Hasher()
        for path, content in self.files.items():
            digest.update(f"{len(path.encode())} {len(content)} {path}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    @property
    def manifest(self) -> bytes:
        """Content of the manifest."""
        lines = (f"{sha256(content)}  {path}\n" for path, content in self.files.items())
        return "".join(lines).encode()

    def write(self, root: Path, *, overwrite: bool = False) -> None:
        """Write every file under `root`, and remove obsolete files of an earlier render.

        All or nothing: a file that no render wrote, or that was changed since, stops the write, unless `overwrite`
        replaces it.

        Raises:
            NothingToDoError: a file is in the way.
            DiskFullError: the disk is full.
        """
        earlier = {path for path, digest in _listed(root).items() if _is_unchanged(root, path, digest)}
        in_the_way = [path for path in self.files if path not in earlier and _occupied(root, path)]
        stuck = [path for path in in_the_way if not overwrite or (root / path).is_dir()]
        if stuck:
            more = f" and {len(stuck) - _SHOWN} more" if len(stuck) > _SHOWN else ""
            raise NothingToDoError(
                f"'{root}' already has {listed(stuck[:_SHOWN])}{more}, not of an earlier render or changed since it",
                help="name an empty folder, or pass --force to replace them",
            )
        for path in _folders(self.files):
            target = root / path
            if target.is_symlink() or (_occupied(root, path) and not target.is_dir()):
                kind = "link" if target.is_symlink() else "file"
                message = f"'{target}' is a {kind}, and a folder is needed there"
                raise NothingToDoError(message, help="name another folder, or move it away")
        self._replace(root, stale=earlier - set(self.files))

    def _replace(self, root: Path, *, stale: set[str]) -> None:
        try:
            new = not root.exists()
            near = root.parent if new else root
            near.mkdir(parents=True, exist_ok=True)
            # Write all files aside first, so that an error leaves the folder unchanged.
            with tempfile.TemporaryDirectory(dir=near, prefix=".builder-") as folder:
                written = Path(folder) / "project"
                _make_folders(written, self.files)
                for path, content in {**self.files, MANIFEST: self.manifest}.items():
                    (written / path).write_bytes(content)
                if new:
                    written.rename(root)
                    return
                _make_folders(root, self.files)
                for path in (*self.files, MANIFEST):
                    (written / path).replace(root / path)
        except OSError as error:
            message = f"cannot write to '{root}': {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(message, help="free the disk, or name a folder of another one") from error
            raise BuilderError(message, help="name a folder that can be written") from error
        for path in sorted(stale):
            (root / path).unlink(missing_ok=True)
            _remove_empty(root, PurePosixPath(path).parent)

    def compare(self, root: Path) -> str:
        """Return a unified diff from the files under `root` to the project, empty when they are equal."""
        paths = sorted({*self.files, *_listed(root)})
        return "".join(line for path in paths for line in self._diff(root, path))

    def _diff(self, root: Path, path: str) -> Iterator[str]:
        target = root / path
        before = target.read_bytes() if target.is_file() else None
        after = self.files.get(path)
        if before == after:
            return
        try:
            old, new = ((text or b"").decode("utf-8").splitlines(keepends=True) for text in (before, after))
        except UnicodeDecodeError:
            yield f"Binary files a/{path} and b/{path} differ\n"
            return
        names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
        lines = list(difflib.unified_diff(old, new, *names))
        for line in lines or [f"--- {names[0]}\n", f"+++ {names[1]}\n"]:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _listed(root: Path) -> dict[str, str]:
    """Return the files of an earlier render, path -> sha256; only plain relative paths are trusted."""
    try:
        text = (root / MANIFEST).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    entries = {path: digest for digest, _, path in (line.partition("  ") for line in text.splitlines())}
    parts = {path: PurePosixPath(path).parts for path in entries}
    return {
        path: digest
        for path, digest in entries.items()
        if parts[path] and not path.startswith("/") and ".." not in parts[path]
    }


def _is_unchanged(root: Path, path: str, digest: str) -> bool:
    """Whether a file of an earlier render is unchanged."""
    target = root / path
    inside = target.resolve().is_relative_to(root.resolve())
    return inside and target.is_file() and not target.is_symlink() and sha256(target.read_bytes()) == digest


def _occupied(root: Path, path: str) -> bool:
    return os.path.lexists(root / path)


def _folders(files: Mapping[str, bytes]) -> list[str]:
    """Return the folders of files below the root, each after its parent."""
    parents = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    return sorted(parents - {"."})


def _make_folders(root: Path, files: Mapping[str, bytes]) -> None:
    root.mkdir(exist_ok=True)
    for path in _folders(files):
        (root / path).mkdir(exist_ok=True)


def _remove_empty(root: Path, folder: PurePosixPath) -> None:
    for parent in (folder, *folder.parents):
        if parent == PurePosixPath():
            return
        try:
            (root / parent).rmdir()
        except OSError:
            return  # it has other files
