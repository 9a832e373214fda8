"""Fetch the files of one commit from another repository, with the wanted submodules, as they are stored."""

import contextlib
import os
import posixpath
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit, urlunsplit

from builder.errors import ToolError
from builder.kernel.git import VARIABLES, program
from builder.run import Completed, Limits, Processes, run
from builder.wording import listed, quoted

_LIMITS = Limits(seconds=3600, memory=8 << 30, file=16 << 30)
_SETTINGS = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"),
    *("-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false", "-c", "gc.auto=0"),
    *("-c", "advice.detachedHead=false", "-c", "maintenance.auto=false", "--no-pager", "--no-replace-objects"),
)
_AS_STORED = "* -text -eol -ident -filter -working-tree-encoding -export-subst\n"
"""Attributes that override the tree's, so that a file has the content of its commit on every machine."""
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")
"""Variables that would make git work in another folder."""
_SUBMODULE = "160000"
_DEEPEST = 8
"""The deepest nesting of submodules."""

Submodules = bool | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Fetches commits with the user's own settings of git, such as a proxy."""

    environ: Mapping[str, str]
    resolve: Callable[[str], str] = lambda source: source
    """Maps a URL to the place to fetch it from."""
    protocols: tuple[str, ...] = ("https", "http", "ssh", "file")
    """The protocols that git may use; for others, git would start programs named in the URL."""
    processes: Processes = field(default_factory=Processes)

    def fetch(self, source: str, commit: str, target: Path, *, submodules: Submodules = ()) -> None:
        """Write the files of one commit into `target`; the commit is a hash over all of them.

        `target` is never incomplete.

        Raises:
            ToolError: git cannot be started, or the repository cannot be reached or lacks the commit or a submodule.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            self._checkout(source, commit, aside, submodules=submodules, depth=0)
            aside.chmod(0o755)  # the store may belong to a group
            with contextlib.suppress(OSError):  # another build was faster
                aside.rename(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _checkout(self, source: str, commit: str, folder: Path, *, submodules: Submodules, depth: int) -> None:
        self._require(folder, source, commit, "init", "--quiet")
        (folder / ".git/info").mkdir(exist_ok=True)
        (folder / ".git/info/attributes").write_text(_AS_STORED, encoding="utf-8")
        self._bring(folder, source, commit)
        self._require(folder, source, commit, "checkout", "--quiet", "--detach", commit)
        found = self._ask(folder, "rev-parse", "HEAD").output.strip()
        if found != commit:
            raise ToolError(
                f"{commit} of {source} is no commit: it leads to {found}", help=f"write the commit: rev = '{found}'"
            )
        for path, rev, url in self._wanted(folder, source, submodules):
            if depth >= _DEEPEST:
                raise _failure(source, commit, f"its submodules are in one another more than {_DEEPEST} times")
            (folder / path).mkdir(parents=True, exist_ok=True)
            self._checkout(url, rev, folder / path, submodules=True, depth=depth + 1)
        shutil.rmtree(folder / ".git")

    def _bring(self, folder: Path, source: str, commit: str) -> None:
        """Fetch only the commit, or if the server does not allow that, all branches and tags."""
        place = self.resolve(source)
        done = self._git(folder, "fetch", "--quiet", "--no-tags", "--depth", "1", "--", place, commit)
        if done.returncode == 0:
            return
        every = self._git(folder, "fetch", "--quiet", "--no-tags", "--", place, "+refs/*:refs/foreign/*")
        if every.returncode != 0:
            raise _failure(source, commit, _reason(done), place=place)
        if self._git(folder, "cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
            why = "the repository does not have that commit; a branch may have been rewritten since"
            raise _failure(source, commit, why, place=place)

    def _wanted(self, folder: Path, source: str, submodules: Submodules) -> Iterator[tuple[str, str, str]]:
        """Yield path, commit and URL of each wanted submodule."""
        if submodules is False or submodules == ():
            return
        commits: dict[str, str] = {}
        for entry in filter(None, self._ask(folder, "ls-tree", "-r", "-z", "HEAD").output.split("\0")):
            facts, _, path = entry.partition("\t")
            mode, _, identity = facts.split()
            if mode == _SUBMODULE:
                commits[path] = identity
        urls = self._urls(folder)
        names = tuple(commits) if submodules is True else submodules
        for name in names:
            path = posixpath.normpath(name)
            if path not in commits or path not in urls:
                has = f"it has {listed(sorted(commits))}" if commits else "it has none"
                raise ToolError(f"{source} has no submodule {quoted(path)}: {has}", help="correct 'submodules'")
            yield path, commits[path], _absolute(urls[path], source)

    def _urls(self, folder: Path) -> dict[str, str]:
        """Return the URL of each submodule by its path."""
        if not (folder / ".gitmodules").is_file() or (folder / ".gitmodules").is_symlink():
            return {}
        done = self._ask(folder, "config", "--null", "--file", ".gitmodules", "--list")
        table: dict[str, dict[str, str]] = {}
        for line in filter(None, done.output.split("\0")):
            key, _, value = line.partition("\n")
            name, _, setting = key.removeprefix("submodule.").rpartition(".")
            table.setdefault(name, {})[setting] = value
        return {each["path"]: each["url"] for each in table.values() if "path" in each and "url" in each}

    def _require(self, folder: Path, source: str, commit: str, *arguments: str) -> None:
        done = self._git(folder, *arguments)
        if done.returncode != 0:
            raise _failure(source, commit, _reason(done))

    def _ask(self, folder: Path, *arguments: str) -> Completed:
        done = self._git(folder, *arguments)
        if done.returncode != 0:
            raise ToolError(f"git {arguments[0]} failed: {_reason(done)}", help="look at the repository")
        return done

    def _git(self, folder: Path, *arguments: str) -> Completed:
        if self.processes.cancelled:
            raise ToolError("stopped before a foreign source was fetched")
        env = {name: value for name, value in self.environ.items() if name not in _ELSEWHERE}
        env |= {**VARIABLES, "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_LFS_SKIP_SMUDGE": "1"}
        env["GIT_ALLOW_PROTOCOL"] = ":".join(self.protocols)
        return run([program(), *_SETTINGS, *arguments], cwd=folder, env=env, processes=self.processes, limits=_LIMITS)


def _absolute(url: str, source: str) -> str:
    """Return the absolute URL of a submodule, which may be relative to its repository's URL.

    Raises:
        ToolError: it is not a URL of https, http or ssh, so git could take it for an option or a program to start.
    """
    if url.startswith(("./", "../")):
        parts = urlsplit(source)
        path = posixpath.normpath(posixpath.join(parts.path, url))
        return urlunsplit(parts._replace(path=path)) if parts.scheme else urljoin(source, url)
    if not url.startswith(("https://", "http://", "ssh://", "file://")) or "://-" in url:
        raise ToolError(
            f"a submodule of {source} has the URL {quoted(url)}, which is none of https, http or ssh",
            help="leave it out of 'submodules', or name it as a source of its own",
        )
    return url


def _reason(done: Completed) -> str:
    lines: Sequence[str] = [line for line in done.output.strip().splitlines() if line.strip()] or ["no reason given"]
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])


def _failure(source: str, commit: str, reason: str, *, place: str | None = None) -> ToolError:
    where = "" if place in (None, source) else f" (from {place})"
    return ToolError(
        f"git cannot fetch {commit} of {source}{where}: {reason}",
        help="look whether the repository can be reached from here, or name a mirror or a folder that has it, "
        "as in BUILDER_MIRRORS='https://github.com/=/srv/git/'",
    )
