"""Send a layout to the hub for `builder publish` and `builder release`, and list what is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder import json_text, terminal
from builder.cli.arguments import taken
from builder.errors import BuilderError, PublishError
from builder.publish import card, hub
from builder.wheel import kernel_wheel

HUB = "hub:"


def require_release(
    unsandboxed: Sequence[str],
    obstacles: Mapping[str, str | None],
    *,
    allow_unsandboxed: bool,
    allow_quick: bool = False,
) -> None:
    """Refuse variants or wheels that are not for release, unless an option allows their kind.

    Raises:
        PublishError: it names each one, with the reason.
    """
    if unsandboxed and not allow_unsandboxed:
        raise PublishError(
            f"built without a sandbox: {', '.join(unsandboxed)}",
            help="build where 'builder doctor' finds a sandbox, or pass --allow-unsandboxed: "
            "nobody can say what of that machine is in them",
        )
    kernel_wheel.require_release(obstacles, allowed=allow_quick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The way in which a command shows what it sends."""

    dry_run: bool
    as_json: bool

    def list(self, verb: str, paths: Sequence[str]) -> None:
        """List the files that are sent."""
        for path in () if self.as_json else paths:
            terminal.out(f"{verb} {path}")

    def end(self, line: str, document: Mapping[str, Any]) -> None:
        """Show how it ended."""
        if self.as_json:
            terminal.document(json_text.document(document))
        else:
            terminal.out(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTarget:
    """A repository of the hub, and the options for sending a layout there."""

    repo_id: str
    endpoint: str | None = None
    branch: str | None = None
    replace: bool = False
    commit: hub.CommitOptions

    def __post_init__(self) -> None:
        if card.REPOSITORY.fullmatch(self.repo_id) is None:
            raise BuilderError(f"'{self.repo_id}' is not a repository of the hub", help="write hub:OWNER/NAME")

    @classmethod
    def of(cls, target: str, given: dict[str, Any]) -> "HubTarget":
        """Return the repository `hub:OWNER/NAME`, and take its options out of `given`.

        Raises:
            BuilderError: the target is not a repository, or two options exclude each other.
        """
        commit = hub.CommitOptions(**taken(hub.CommitOptions, given))
        return cls(repo_id=target.removeprefix(HUB), commit=commit, **taken(cls, given))

    def repository(self, branch: str) -> hub.Hub:
        """Return the repository, at the branch that the user named or else at `branch`."""
        return hub.Hub(self.repo_id, branch=self.branch or branch, endpoint=self.endpoint)

    @property
    def name(self) -> str:
        """The repository, as users write it."""
        return f"{HUB}{self.repo_id}"

    def require(self, branch: str) -> None:
        """Refuse a repository that cannot be published to, before the layout is made.

        Raises:
            PublishError: nobody is logged in, the hub does not answer, or the repository is not suitable.
        """
        self.repository(branch).require_access(self.commit)

    def send(self, layout: hub.Layout, shown: Shown, **more: object) -> None:
        """Commit the files that the repository lacks, or open a pull request; `more` goes into the JSON document.

        Raises:
            PublishError: the hub refused.
        """
        repository = self.repository(layout.branch)
        branch = repository.branch
        todo = repository.plan(layout, replace=self.replace)
        repository.require(self.commit, exists=todo.exists)
        would = "would " if shown.dry_run else ""
        shown.list(f"{would}add", sorted(todo.add))
        shown.list(f"{would}delete", todo.delete)
        url = None
        if todo.empty:
            status, line = "unchanged", f"{self.name}: branch {branch} has all of it"
        elif shown.dry_run:
            what = "a pull request to" if self.commit.create_pr else "one commit on"
            status, line = "planned", f"{self.name}: would make {what} branch {branch}"
        else:
            message = f"{layout.kernel} {layout.version}: {len(todo.add)} files"
            line = url = repository.publish(todo, message=message, options=self.commit)
            status = "proposed" if self.commit.create_pr else "published"
        sent = {"add": sorted(todo.add), "delete": list(todo.delete), "url": url}
        shown.end(line, {**more, "target": self.name, "branch": branch, "status": status, **sent})
