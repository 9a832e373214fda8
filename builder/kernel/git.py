"""Ask git about a folder that may be hostile; only this module and `git_fetch` run git, and git runs nothing else."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from builder import run
from builder.errors import BuilderError, ToolError
from builder.hashes import git_blob

_ALWAYS = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", f"core.attributesFile={os.devnull}"),
    *("-c", "safe.bareRepository=explicit", "-c", "diff.external=", "-c", "protocol.allow=never"),
    *("--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs"),
)
VARIABLES = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_OWN_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_FILTER = re.compile(r"filter\.(?P<name>[^=\n]+)\.(?:clean|smudge|process|required)")
_REGULAR = ("100644", "100755")
_SHA1_DIGITS = 40
_SECONDS = 600
_MOST_BYTES = 1 << 30
"""The most bytes of a commit's files together; a kernel has a thousandth of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnswer:
    """The result of a git command."""

    ok: bool
    """Whether git succeeded."""
    output: str

    @property
    def line(self) -> str | None:
        """The output without its line end; None if git failed or printed nothing."""
        return self.output.strip() or None if self.ok else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A folder in a work tree of git."""

    root: Path
    """The folder that contains `.git`."""
    inside: str
    """The folder in question, relative to the root; empty for the root."""

    @classmethod
    def around(cls, folder: Path) -> "Checkout | None":
        """Return the checkout that contains a folder; None if there is none that git may read.

        A bare repository does not count: a clone can contain one among its files, with settings that run commands.

        Raises:
            ToolError: git cannot be started.
        """
        real = Path(os.path.realpath(folder))
        root = next((above for above in (real, *real.parents) if os.path.lexists(above / ".git")), None)
        return None if root is None else cls.at(root, inside=real)

    @classmethod
    def at(cls, root: Path, *, inside: Path | None = None) -> "Checkout | None":
        """Return the checkout with this root, if git may read it."""
        relative = "" if inside is None or inside == root else inside.relative_to(root).as_posix()
        found = cls(root=root, inside=relative)
        repository = found.ask("rev-parse", "--absolute-git-dir").line
        # With an invalid `.git`, a git before 2.38 would take the folder itself for a bare repository.
        return None if repository is None or os.path.realpath(repository) == os.path.realpath(root) else found

    def ask(self, *arguments: str) -> GitAnswer:
        """Run git in the root of the checkout, without running its hooks, filters or configured commands.

        Raises:
            ToolError: git is not installed, cannot be started or does not answer.
        """
        done = _run(self.root, (*_ALWAYS, *arguments), env=_environment(self.root))
        return GitAnswer(ok=done.returncode == 0, output=os.fsdecode(done.content))

    def commit(self, revision: str) -> str | None:
        """Return the commit of a revision; None if there is none."""
        return self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").line

    @property
    def is_shallow(self) -> bool:
        """Whether the clone is shallow."""
        return self.ask("rev-parse", "--is-shallow-repository").line == "true"

    def merge_base(self, commit: str) -> str | None:
        """Return the last common commit of HEAD and `commit`."""
        return self.ask("merge-base", "HEAD", commit).line

    def changed(self) -> bool:
        """Whether tracked files of the folder differ from HEAD; True if git cannot tell."""
        names = self.ask("config", "--null", "--name-only", "--get-regexp", r"^filter\.").output.split("\0")
        settings: list[str] = []
        for name in sorted(set(filter(None, names))):
            match = _FILTER.fullmatch(name)
            if match is None:  # it cannot be turned off
                return True
            for key in ("clean", "smudge", "process", "required"):
                settings += ("-c", f"filter.{match['name']}.{key}={'false' if key == 'required' else ''}")
        # Work trees of submodules have their own settings: compare only the commits that they are at.
        options = ("--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
        answer = self.ask(*settings, "status", *options, "--", self.inside or ".")
        return not answer.ok or answer.output != ""

    def regular_files(self, commit: str) -> Mapping[str, str] | None:
        """Return the objects of the folder's regular files in a commit, by path; None if it lacks the folder."""
        files = self._files(commit)
        return None if files is None else {file.path: file.object for file in files}

    def _files(self, commit: str) -> tuple["_File", ...] | None:
        tree = self.ask("ls-tree", "-r", "-l", "-z", f"{commit}:{self.inside}")
        files = []
        for entry in filter(None, tree.output.split("\0")) if tree.ok else ():
            facts, _, path = entry.partition("\t")
            mode, _, identity, size = facts.split()
            if mode in _REGULAR and size.isdigit() and not path.startswith("/") and ".." not in path.split("/"):
                files.append(_File(object=identity, size=int(size), path=path))
        return tuple(files) if tree.ok else None

    def write_tree(self, commit: str, target: Path) -> bool:
        """Write the regular files that the folder has in a commit, as stored; return whether the folder exists there.

        Links and paths that leave the folder are left out, so files that need them count as changed. So do files whose
        checkout differs from the commit, as with converted line ends or Git LFS.

        Raises:
            BuilderError: the files are larger than those of any kernel.
        """
        files = self._files(commit)
        if files is None:
            return False
        if sum(file.size for file in files) > _MOST_BYTES:
            raise BuilderError(
                f"the kernel's folder has more than {_MOST_BYTES >> 20} MiB in commit {commit[:12]}",
                help="leave --changed-since out",
            )
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as content:
            asked.write("".join(f"{file.object}\n" for file in files).encode())
            asked.seek(0)
            argv = (*_ALWAYS, "cat-file", "--batch")
            _run(self.root, argv, env=_environment(self.root), stdin=asked, stdout=content)
            content.seek(0)
            for file in files:
                found, path = _next_object(content, file), target / file.path
                # a file and a folder of the same name cannot both exist in a work tree
                with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError, ValueError):
                    if found is not None:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(found)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    object: str
    size: int
    path: str


def object_of(content: bytes, *, like: str) -> str:
    """Return git's name for a file with this content, with the hash function of the name `like`."""
    function = "sha1" if len(like) == _SHA1_DIGITS else "sha256"
    return git_blob(content, function=function)


def _next_object(content: BinaryIO, file: _File) -> bytes | None:
    """Read the next object of `cat-file --batch`; None if the repository lacks it."""
    header = content.readline().split()
    if len(header) != len(("object", "type", "size")):
        return None
    found = content.read(int(header[-1]))
    content.read(1)
    return found if header[0].decode() == file.object else None


def make_copy(folder: Path, *arguments: str) -> None:
    """Run git on a copy made by this process, without any user's settings; local clones are allowed.

    Raises:
        ToolError: git cannot be started, or failed.
    """
    env = {**_environment(folder), **_OWN_SETTINGS, "GIT_ALLOW_PROTOCOL": "file"}
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    done = _run(folder, (*_ALWAYS, "-c", "protocol.file.allow=always", *who, *arguments), env=env)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ToolError(f"git {arguments[0]} failed: {reason}")


def program() -> str:
    """Return the path of git.

    Raises:
        ToolError: git is not installed.
    """
    found = shutil.which("git")
    if found is None:
        raise ToolError("cannot start 'git': there is none on PATH", help="install 'git' or put it on PATH")
    return found


def is_here() -> bool:
    """Whether this machine has git."""
    return shutil.which("git") is not None


def _environment(folder: Path) -> dict[str, str]:
    """Return git's variables: the repository and the settings to use, and none of the user's `GIT_…`."""
    home = os.path.expanduser("~")  # noqa: PTH111  pathlib raises where no home is known
    return {
        "PATH": os.defpath,
        "HOME": home,
        # If the folder's own `.git` is invalid, git must not use a repository above it.
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_ALLOW_PROTOCOL": "",
        **VARIABLES,
    }


def _run(
    folder: Path,
    arguments: Sequence[str],
    *,
    env: dict[str, str],
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
) -> run.Answer:
    try:
        return run.ask([program(), *arguments], cwd=folder, env=env, stdin=stdin, stdout=stdout, seconds=_SECONDS)
    except run.TooLongError as error:
        raise ToolError(
            f"git did not answer within {_SECONDS // 60} minutes about '{folder}'",
            help="run `git status` there and see what it waits for",
        ) from error
    except run.NotStartedError as error:
        raise ToolError(f"cannot start 'git' in '{folder}': {error.reason}", help="install 'git' again") from error
