"""`builder publish`: an index to a directory or a bucket, a hub layout to the hub."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import click

from builder import terminal
from builder.cli.arguments import allow_quick_option
from builder.errors import BuilderError, PublishError
from builder.publish import card, site, targets
from builder.publish import hub as hub_
from builder.wheel import release

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]+(?:/[\w!.*'()+=@-]+)*/?", re.ASCII)


@click.command()
@click.argument("source", metavar="SOURCE", type=click.Path(path_type=Path))
@click.argument("target", metavar="TARGET")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--endpoint-url", metavar="URL", help="Address of the S3 service or of the hub.")
@click.option("--branch", help="Hub: another branch than v<version>.")
@click.option("--replace", is_flag=True, help="Hub: replace variants that are there with other files.")
@click.option("--allow-unsandboxed", is_flag=True, help="Publish also what was built without a sandbox.")
@allow_quick_option
def command(
    source: Path,
    target: str,
    endpoint_url: str | None,
    branch: str | None,
    *,
    dry_run: bool,
    replace: bool,
    allow_unsandboxed: bool,
    allow_quick: bool,
) -> None:
    """Publish SOURCE to TARGET.

    \b
    A site of `builder index`:       a directory, or s3://BUCKET/PREFIX (with rclone)
    A layout of `builder bundle`:    hub:OWNER/NAME (with huggingface_hub)

    A file that is there is never replaced by another of its name. A run that broke off is taken up by the next.
    """  # noqa: D301  a backspace is click's sign for lines to keep
    if target.startswith("hub:"):
        repo_id = target.removeprefix("hub:")
        layout = _layout(source, repo_id, allow_unsandboxed=allow_unsandboxed)
        release.require(layout.obstacles, allowed=allow_quick)
        _hub(layout, repo_id, endpoint_url, branch=branch, dry_run=dry_run, replace=replace)
    else:
        to = _target(target, endpoint_url)
        todo = site.plan(source, to)
        _refuse(todo.unsandboxed, allowed=allow_unsandboxed)
        release.require(todo.obstacles, allowed=allow_quick)
        _site(source, to, todo, dry_run=dry_run)


def _refuse(unsandboxed: Sequence[str], *, allowed: bool) -> None:
    if unsandboxed and not allowed:
        raise PublishError(
            f"built without a sandbox: {', '.join(unsandboxed)}",
            help="build where 'builder doctor' finds a sandbox, or pass --allow-unsandboxed: "
            "nobody can say what of that machine is in them",
        )


def _target(text: str, endpoint_url: str | None) -> targets.Target:
    if text.startswith("s3://"):
        name = text.removeprefix("s3://")
        if _BUCKET.fullmatch(name) is None or any(set(part) == {"."} for part in name.split("/")):
            raise BuilderError(f"'{text}' is not a bucket", help="write s3://BUCKET or s3://BUCKET/PREFIX")
        endpoint = endpoint_url or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return targets.Bucket(name=name, endpoint=endpoint, environ=dict(os.environ))
    if "://" in text:
        raise BuilderError(f"'{text}' is of no kind that is known", help="write a directory, s3://… or hub:OWNER/NAME")
    return targets.Directory(Path(text))


def _site(source: Path, target: targets.Target, todo: site.SitePlan, *, dry_run: bool) -> None:
    for name in todo.wheels:
        terminal.out(f"{'would add' if dry_run else 'adding'} {name}")
    if not dry_run:
        site.publish(source, target, todo)
    verb = "would be published" if dry_run else "published"
    terminal.out(f"{target}: {len(todo.wheels)} new wheels, {len(todo.pages) + 1} pages {verb}")


def _layout(source: Path, repo_id: str, *, allow_unsandboxed: bool) -> hub_.Layout:
    if card.REPOSITORY.fullmatch(repo_id) is None:
        raise BuilderError(f"'{repo_id}' is not a repository of the hub", help="write hub:OWNER/NAME")
    layout = hub_.read(source)
    _refuse(layout.unsandboxed, allowed=allow_unsandboxed)
    return layout


def _hub(
    layout: hub_.Layout, repo_id: str, endpoint: str | None, *, branch: str | None, dry_run: bool, replace: bool
) -> None:
    repository = hub_.Hub(repo_id, branch=branch or layout.branch, endpoint=endpoint)
    todo = repository.plan(layout, replace=replace)
    for verb, paths in (("add", sorted(todo.add)), ("delete", todo.delete)):
        for path in paths:
            terminal.out(f"{'would ' if dry_run else ''}{verb} {path}")
    if not todo.add and not todo.delete:
        terminal.out(f"hub:{repo_id}: branch {repository.branch} has all of it")
    elif not dry_run:
        terminal.out(repository.publish(todo, message=f"{layout.kernel} {layout.version}: {len(todo.add)} files"))
