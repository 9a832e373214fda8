"""Write the workflow files of a kernel's repository, and find the address of this builder for them."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from builder import __version__, resources
from builder.errors import ToolError
from builder.kernel.git import Checkout

DISTRIBUTION = "kernel-wheel-builder"
TAG = f"v{__version__}"
_REF = r"(?P<ref>\w[\w./-]*)"
_NAME = r"(?!\.)[\w.-]+?"
_PATH = rf"(?P<repository>{_NAME}(?:/{_NAME})+)(?:\.git)?/?"
_AT = rf"(?:(?:@|\?(?:ref|rev)=){_REF})?"
_FORMS = (
    rf"(?P<forge>github|gitlab):(?P<repository>{_NAME}/{_NAME})(?:/{_REF})?",
    rf"(?:git\+)?https?://(?:[^@/]+@)?(?P<host>[\w.-]+(?::\d+)?)/{_PATH}{_AT}",
    rf"(?:git\+)?ssh://(?:[^@/]+@)?(?P<host>[\w.-]+)(?::\d+)?/{_PATH}{_AT}",
    rf"[\w.-]+@(?P<host>[\w.-]+):{_PATH}",
)
"""The ways to write the address of a repository: for Nix, for pip and for git."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LABELS = ("source", "repository")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderAddress:
    """A public repository of this project."""

    host: str
    repository: str
    ref: str | None = None
    """A tag, a branch or a commit, if the address has one."""
    released: bool = False
    """Whether this version is on a package index."""

    @classmethod
    def parse(cls, url: str, *, ref: str | None = None) -> "BuilderAddress | None":
        """Parse an address; None if it is local or is not a repository."""
        match = next(filter(None, (re.fullmatch(form, url, re.ASCII) for form in _FORMS)), None)
        if match is None:
            return None
        parts = match.groupdict()
        host = f"{parts['forge']}.com" if "forge" in parts else parts["host"]
        return cls(host=host, repository=parts["repository"], ref=ref or parts.get("ref"))

    @property
    def page(self) -> str:
        """The address for a browser."""
        return f"https://{self.host}/{self.repository}"

    @property
    def requirement(self) -> str:
        """The requirement for pip."""
        if self.released:
            return f"{DISTRIBUTION}=={__version__}"
        return f"{DISTRIBUTION} @ git+{self.page}" + ("" if self.ref is None else f"@{self.ref}")

    @property
    def flake(self) -> str:
        """The input for Nix; the lock file has the commit."""
        ref = None if self.ref is None or _COMMIT.fullmatch(self.ref) else self.ref
        if self.host == "github.com":
            return f"github:{self.repository}" + ("" if ref is None else f"/{ref}")
        return f"git+{self.page}" + ("" if ref is None else f"?ref={ref}")


def find() -> BuilderAddress | None:
    """Return the repository of this builder, if this machine can tell."""
    return _of_checkout(resources.CHECKOUT) or _of_distribution()


def _of_checkout(root: Path | None) -> BuilderAddress | None:
    # The repository around an installed builder, such as that around a virtual environment, is not builder's.
    if root is None or not (root / ".git").exists():
        return None
    try:
        checkout = Checkout.at(root)
    except ToolError:  # no git
        return None
    url = None if checkout is None else checkout.ask("config", "--get", "remote.origin.url").line
    if checkout is None or url is None:
        return None
    commit = checkout.commit("HEAD")
    # The commit must be on a branch of the origin, or nobody else could fetch it.
    pushed = commit is not None and checkout.ask("branch", "--remotes", "--contains", commit).line
    return BuilderAddress.parse(url, ref=commit if pushed else None)


def _of_distribution() -> BuilderAddress | None:
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError):  # another program wrote the file
        # An installer's note (PEP 610): a commit of a repository, or a folder.
        direct = json.loads(distribution.read_text("direct_url.json") or "null")
        if direct is not None:
            url = str(direct["url"])
            if "vcs_info" in direct:
                return BuilderAddress.parse(url, ref=direct["vcs_info"]["commit_id"])
            parts = urlsplit(url)
            is_folder = parts.scheme == "file" and "dir_info" in direct
            return _of_checkout(Path(unquote(parts.path))) if is_folder else None
    links = (link.partition(",") for link in distribution.metadata.get_all("Project-URL", []))
    urls = [url.strip() for label, _, url in links if label.strip().lower() in _LABELS]
    home = next(filter(None, map(BuilderAddress.parse, urls)), None)
    return None if home is None else BuilderAddress(host=home.host, repository=home.repository, released=True)


Service = Literal["github", "gitlab"]
SERVICES: tuple[Service, ...] = ("github", "gitlab")

PLACEHOLDER = "OWNER/REPOSITORY"
"""Stands for builder's repository if it is unknown."""
_UNKNOWN = f"""
# EDIT: put the repository of builder in place of {PLACEHOLDER}, or make this file by `builder init --builder-url`."""

_TEMPLATES = Path(__file__).parent / "templates"
_PLACES: Mapping[Service, str] = {"github": ".github/workflows/kernel.yml", "gitlab": ".gitlab-ci.yml"}


def caller(service: Service, *, home: BuilderAddress | None) -> Mapping[str, str]:
    """Return the workflow files for a kernel's repository, by path.

    If `home` is None, a comment says what to fill in.
    """
    if home is not None:
        home = replace(home, ref=home.ref or TAG)
    values = {
        "@HOME@": _UNKNOWN if home is None else f" {home.page}",
        "@REPOSITORY@": PLACEHOLDER if home is None else home.repository,
        "@REF@": TAG if home is None else home.ref,
        "@BUILDER@": f"{DISTRIBUTION}=={__version__}" if home is None else home.requirement,
    }
    text = template(f"{service}.yml")
    for name, value in values.items():
        text = text.replace(name, str(value))
    return {_PLACES[service]: text}


def template(name: str) -> str:
    """Return a template, unchanged."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")
