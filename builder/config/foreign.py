"""The tables `[sources.<name>]` and `[[generate]]`: code that is not in the kernel's own tree."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from builder.config.values import InvalidValueError, ProjectPath, Text
from builder.wording import quoted


class SourceName(Text):
    """The name of a `[sources.<name>]` table, as in `"<name>:include"`."""

    __slots__ = ()

    pattern = r"[a-z][a-z0-9_-]{1,62}"
    code = "B050"
    kind = "a name of a foreign source"
    rule = "use 2 to 63 lower-case letters, digits, '_' and '-', a letter first, as in 'cutlass'"


class SourceUrl(Text):
    """The URL of a foreign Git repository: https, http or ssh, without a password."""

    __slots__ = ()

    pattern = (
        r"(?:https?://|ssh://(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?)[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?"
        r"/[A-Za-z0-9._~/+@%=:-]+"
    )
    code = "B051"
    kind = "the URL of a repository"
    rule = "write https://HOST/PATH, or ssh://USER@HOST/PATH, without a password or a query"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return what stands for a folder, which another machine does not have."""
        local = text.startswith(("file:", "/", "."))
        return "a folder of this machine can stand in for a URL in BUILDER_MIRRORS" if local else None


class ArchiveUrl(Text):
    """The URL of an archive: https or http; a `.tar.gz`, `.tgz`, `.tar.xz` or `.zip`."""

    __slots__ = ()

    pattern = r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/[A-Za-z0-9._~/+@%=:-]*\.(?:tar\.gz|tgz|tar\.xz|zip)"
    code = "B051"
    kind = "the URL of an archive"
    rule = "write https://HOST/PATH of a '.tar.gz', '.tgz', '.tar.xz' or '.zip', without a password or a query"


class GitCommit(Text):
    """A whole commit of Git: 40 hexadecimal digits. A tag or a branch can be moved."""

    __slots__ = ()

    pattern = r"[0-9a-f]{40}"
    code = "B052"
    kind = "a whole commit"
    rule = "write its 40 hexadecimal digits in lower case, since a tag or a branch can be moved"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return how to find the commit."""
        lower = text.lower()
        return (
            f"write '{lower}'"
            if cls.matches(lower)
            else "'git ls-remote URL' lists tags and branches with their commits"
        )


class Sha256(Text):
    """A sha256: 64 hexadecimal digits."""

    __slots__ = ()

    pattern = r"[0-9a-f]{64}"
    code = "B052"
    kind = "a sha256"
    rule = "write its 64 hexadecimal digits in lower case"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return how to compute it."""
        lower = text.lower().removeprefix("sha256:").removeprefix("sha256-")
        return f"write '{lower}'" if cls.matches(lower) else "'sha256sum FILE' prints it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """A source tree of another project, by its hash; entries of `src` and `include` name it as `"<name>:path"`."""

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("git", "url")
    NEEDS: ClassVar[Mapping[str, str]] = {
        "git": "rev",
        "rev": "git",
        "submodules": "git",
        "url": "sha256",
        "sha256": "url",
    }

    git: SourceUrl | None = None
    """Git repository."""
    rev: GitCommit | None = None
    """Commit of that repository, which is a hash over all its files."""
    submodules: bool | tuple[ProjectPath, ...] = ()
    """Submodules to fetch as well, at the commits that the tree names: their paths, or `true` for all of them."""
    url: ArchiveUrl | None = None
    """Archive; the folder is stripped if it has a single one at its top."""
    sha256: Sha256 | None = None
    """sha256 of the archive."""
    license: str | None = None
    """License of that code, an SPDX expression such as `"BSD-3-Clause"`, for the bill of materials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPath:
    """A path in a foreign source."""

    source: str
    path: str


def foreign_path(entry: str, sources: Collection[str]) -> ForeignPath | None:
    """Return what an entry of `src` or `include` names in a foreign source; None where it is a path of the project."""
    name, colon, path = entry.partition(":")
    return ForeignPath(source=name, path=path) if colon and name in sources else None


def require_path(entry: str, found: ForeignPath) -> None:
    """Refuse a path that is not one inside a foreign tree.

    Raises:
        InvalidValueError: it is absolute, leaves the tree, is empty or a glob.
    """
    try:
        ProjectPath(found.path)
    except InvalidValueError as error:
        message = f"{quoted(entry)} is not a path inside the foreign source '{found.source}'"
        raise InvalidValueError(
            message, code="B053", help=f"write it relative to the root of that tree; the root is '{found.source}:.'"
        ) from error
    if any(character in found.path for character in "*?["):
        message = f"{quoted(entry)} is a glob in a foreign source, whose files are not known before it is fetched"
        raise InvalidValueError(message, code="B053", help="list the files")
