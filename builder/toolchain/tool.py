"""Find, identify and install tools."""

import functools
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import resources, toml
from builder.errors import NotHereError, ToolError
from builder.hashes import sha256
from builder.run import NotStartedError, ask

REACHES_BUILD = ("ROCM_PATH", "ONEAPI_ROOT", "DEVELOPER_DIR", "SDKROOT")
"""The user's variables that tools and builds see; they can change the bytes, so they are in the build key.

CFLAGS, CXXFLAGS, CPATH and similar variables are not used, since flags belong in `build.toml`.
"""

Digest = Callable[[Path], str]
_WHOLE_COMMAND = "run:"
"""The prefix of a complete command in the table, which no package manager runs."""


def no_digest(path: Path) -> str:
    """Return a placeholder digest, if only paths and versions are needed: digests are for build keys."""
    return path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program, with its version and a digest of its content."""

    path: Path
    version: str
    digest: str
    """sha256 of the program and of the parts that it runs, independent of their paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The places to look for tools, and the way to digest them."""

    environ: Mapping[str, str]
    digest: Digest

    @property
    def path(self) -> str:
        """The folders of PATH."""
        return self.environ.get("PATH", os.defpath)

    def which(self, name: str) -> Path | None:
        """Return the program with this name on PATH, or the path itself if it is a program."""
        found = shutil.which(name, path=self.path)
        return None if found is None else Path(found)

    def part(self, compiler: Path, question: str) -> Path | None:
        """Return a part of a compiler; None if the compiler does not know it."""
        answer = self.first_line(compiler, question)
        found = Path(answer) if "/" in answer else self.which(answer) if answer else None
        return found.resolve() if found is not None and found.is_file() else None

    def digest_all(self, files: Iterable[Path]) -> str:
        """Return a sha256 over the names and contents of `files`, independent of their folders."""
        lines = "".join(f"{path.name} {self.digest(path)}\n" for path in files)
        return sha256(lines)

    def first_line(self, program: Path, argument: str) -> str:
        """Return the first line of a program's output for one argument; empty without output."""
        return next(iter(self.run(program, argument).splitlines()), "")

    def run(self, program: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        """Return a program's output, whatever its exit status; it sees `variables` in addition to a build's.

        Raises:
            ToolError: it cannot be started.
        """
        # Tools see a build's variables: xcrun and hipcc use these to find other tools.
        seen = {name: self.environ[name] for name in REACHES_BUILD if self.environ.get(name)}
        try:
            done = ask([program, *arguments], env={"PATH": self.path, "LC_ALL": "C", **seen, **(variables or {})})
        except NotStartedError as error:
            raise ToolError(f"cannot run '{program}': {error.reason}") from error
        return done.stdout + done.stderr


def require_release(what: str, path: Path, *, found: str, toolkit: str | None, remedy: str) -> None:
    """Refuse a toolkit of another release than the cell's, since the wheel would not match its name.

    Raises:
        NotHereError: the toolkit has another release.
    """
    if toolkit is not None and found != ".".join(toolkit.split(".")[:2]):
        raise NotHereError(
            f"{what} at '{path}' is {found}; this cell needs {toolkit}",
            help=f"{remedy} {toolkit}, or name a cell of {found}, if there is one",
        )


@functools.cache
def _table() -> Mapping[str, Any]:
    return toml.loads((resources.DATA / "distributions.toml").read_text(encoding="utf-8"))


def os_release() -> Mapping[str, str]:
    """Return the fields of /etc/os-release; empty if it is missing."""
    if sys.platform == "darwin":
        return {"ID": "macos"}
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def installing(*tools: str, of: Mapping[str, str] | None = None) -> str:
    """Return the command that installs tools on this system, or on the one described by `of`.

    If the distribution is unknown, or lacks a package, the text says so.
    """
    system = os_release() if of is None else of
    names = [system.get("ID", ""), *system.get("ID_LIKE", "").split()]
    families: Mapping[str, Mapping[str, Any]] = _table()["family"]
    known = next((family for name in names for family, facts in families.items() if name in facts["ids"]), None)
    packages = [_table()["tool"][tool].get(known) for tool in tools]
    if known is None or None in packages:
        return f"install {' '.join(tools)}" + ("" if known is None else ", which this distribution does not package")
    whole = [package.removeprefix(_WHOLE_COMMAND) for package in packages if package.startswith(_WHOLE_COMMAND)]
    named = [package for package in packages if not package.startswith(_WHOLE_COMMAND)]
    commands = [*dict.fromkeys(whole)]
    if named:
        commands.append(" ".join((families[known]["install"], *dict.fromkeys(named))))
    return " && ".join(commands)
