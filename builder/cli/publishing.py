"""Send a site or a layout for `builder publish` and `builder release`, and show what is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import json_text, terminal
from builder.errors import BuilderError, PublishError
from builder.publish import card, hub, site
from builder.wheel import kernel_wheel

HUB = "hub:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The kinds of wheels that a user takes although they are not for release."""

    unsandboxed: bool
    quick: bool

    def require(self, unsandboxed: Sequence[str], obstacles: Mapping[str, str | None]) -> None:
        """Refuse what is not for release.

        Raises:
            PublishError: naming each variant or wheel, with the reason.
        """
        if unsandboxed and not self.unsandboxed:
            raise PublishError(
                f"built without a sandbox: {', '.join(unsandboxed)}",
                help="build where 'builder doctor' finds a sandbox, or pass --allow-unsandboxed: "
                "nobody can say what of that machine is in them",
            )
        kernel_wheel.require_release(obstacles, allowed=self.quick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The way in which a command tells what it sends."""

    dry_run: bool
    as_json: bool

    def list(self, verb: str, paths: Sequence[str]) -> None:
        """Name what is sent."""
        for path in () if self.as_json else paths:
            terminal.out(f"{'would ' if self.dry_run else ''}{verb} {path}")

    def end(self, line: str, document: Mapping[str, Any]) -> None:
        """Say how it ended."""
        if self.as_json:
            terminal.document(json_text.document(document))
        else:
            terminal.out(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTarget:
    """A repository of the hub, and how a layout reaches it."""

    repo_id: str
    endpoint: str | None = None
    branch: str | None = None
    replace: bool = False
    access: hub.Access

    def __post_init__(self) -> None:
        if card.REPOSITORY.fullmatch(self.repo_id) is None:
            raise BuilderError(f"'{self.repo_id}' is not a repository of the hub", help="write hub:OWNER/NAME")

    def repository(self, branch: str) -> hub.Hub:
        """Return the repository, at a branch or the one that the user named."""
        return hub.Hub(self.repo_id, branch=self.branch or branch, endpoint=self.endpoint)

    @property
    def name(self) -> str:
        """The repository, as users write it."""
        return f"{HUB}{self.repo_id}"

    def require(self, branch: str) -> None:
        """Refuse a repository that cannot be published to, before anything is made for it.

        Raises:
            PublishError: nobody is logged in, the hub cannot be asked, or the repository is not as it has to be.
        """
        self.repository(branch).require_access(self.access)

    def send(self, layout: hub.Layout, shown: Shown) -> "Sent":
        """Make one commit of what the repository lacks, or a pull request.

        Raises:
            PublishError: the hub refused.
        """
        repository = self.repository(layout.branch)
        todo = repository.plan(layout, replace=self.replace)
        repository.require(self.access, exists=todo.exists)
        shown.list("add", sorted(todo.add))
        shown.list("delete", todo.delete)
        url = None
        if not todo.empty and not shown.dry_run:
            message = f"{layout.kernel} {layout.version}: {len(todo.add)} files"
            url = repository.publish(todo, message=message, access=self.access)
        document = {
            "target": self.name,
            "branch": repository.branch,
            "status": _status(empty=todo.empty, dry_run=shown.dry_run, proposed=self.access.create_pr),
            "add": sorted(todo.add),
            "delete": list(todo.delete),
            "url": url,
        }
        return Sent(line=self._line(todo, repository.branch, url), document=document)

    def _line(self, todo: hub.HubCommit, branch: str, url: str | None) -> str:
        if todo.empty:
            return f"{self.name}: branch {branch} has all of it"
        if url is None:
            what = "a pull request to" if self.access.create_pr else "one commit on"
            return f"{self.name}: would make {what} branch {branch}"
        return url


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The report of what a repository was sent."""

    line: str
    """In a line."""
    document: Mapping[str, Any]


def _status(*, empty: bool, dry_run: bool, proposed: bool = False) -> str:
    if empty:
        return "unchanged"
    if dry_run:
        return "planned"
    return "proposed" if proposed else "published"


def send_site(source: Path, target: site.Target, todo: site.SitePlan, shown: Shown) -> None:
    """Send a site of `builder index`."""
    for name in () if shown.as_json else todo.wheels:
        terminal.out(f"{'would add' if shown.dry_run else 'adding'} {name}")
    if not shown.dry_run:
        site.publish(source, target, todo)
    verb = "would be published" if shown.dry_run else "published"
    line = f"{target}: {len(todo.wheels)} new wheels, {len(todo.pages) + 1} pages {verb}"
    status = _status(empty=False, dry_run=shown.dry_run)
    shown.end(line, {"target": str(target), "status": status, "wheels": list(todo.wheels)})
