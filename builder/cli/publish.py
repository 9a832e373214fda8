"""`builder publish`: an index to a directory or a bucket, a hub layout to the hub."""

import os
import re
from pathlib import Path
from typing import Any

import click

from builder.cli.arguments import PATH, allow_quick_option, taken
from builder.cli.publishing import HUB, HubTarget, Shown, require_release
from builder.errors import BuilderError
from builder.publish import hub, site

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]+(?:/[\w!.*'()+=@-]+)*/?", re.ASCII)


@click.command()
@click.argument("source", metavar="SOURCE", type=PATH)
@click.argument("target", metavar="TARGET")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--endpoint-url", "endpoint", metavar="URL", help="Address of the S3 service or of the hub.")
@click.option("--branch", help="Hub: another branch than v<version>.")
@click.option("--replace", is_flag=True, help="Hub: replace variants that are there with other files.")
@click.option("--create-pr", is_flag=True, help="Hub: open a pull request, which needs no write access.")
@click.option("--private", is_flag=True, help="Hub: make a new repository private; refuse an existing public one.")
@click.option("--allow-unsandboxed", is_flag=True, help="Publish also what was built without a sandbox.")
@allow_quick_option
@click.option("--json", "as_json", is_flag=True, help="What was sent, and where it is, as JSON on stdout.")
def command(
    source: Path,
    target: str,
    *,
    dry_run: bool,
    allow_unsandboxed: bool,
    allow_quick: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Publish SOURCE to TARGET.

    \b
    A site of `builder index`:       a directory, or s3://BUCKET/PREFIX (with rclone)
    A layout of `builder bundle`:    hub:OWNER/NAME (with huggingface_hub)

    A published file is never replaced by another one of its name. To continue an interrupted run, run the command
    again.
    """  # noqa: D301  a backspace is click's sign for lines to keep
    shown = Shown(dry_run=dry_run, as_json=as_json)
    allowed = {"allow_unsandboxed": allow_unsandboxed, "allow_quick": allow_quick}
    if target.startswith(HUB):
        repository = HubTarget.of(target, given)
        layout = hub.read(source)
        require_release(layout.unsandboxed, layout.obstacles, **allowed)
        repository.send(layout, shown)
        return
    commit = hub.CommitOptions(**taken(hub.CommitOptions, given))
    if commit.create_pr or commit.private:
        raise BuilderError(
            f"'{target}' has no {'pull requests' if commit.create_pr else 'private repositories'}: the hub has them",
            help="write hub:OWNER/NAME, or leave the option out",
        )
    to = _target(target, given["endpoint"])
    todo = site.plan(source, to)
    require_release(todo.unsandboxed, todo.obstacles, **allowed)
    shown.list("would add" if dry_run else "adding", todo.wheels)
    if not dry_run:
        site.publish(source, to, todo)
    verb, status = ("would be published", "planned") if dry_run else ("published", "published")
    new = len(todo.wheels)
    line = f"{to}: {new} new wheel{'' if new == 1 else 's'}, {len(todo.pages) + 1} pages {verb}"
    shown.end(line, {"target": str(to), "status": status, "wheels": list(todo.wheels)})


def _target(text: str, endpoint_url: str | None) -> site.Target:
    if text.startswith("s3://"):
        name = text.removeprefix("s3://")
        if _BUCKET.fullmatch(name) is None or any(set(part) == {"."} for part in name.split("/")):
            raise BuilderError(f"'{text}' is not a bucket", help="write s3://BUCKET or s3://BUCKET/PREFIX")
        endpoint = endpoint_url or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return site.Bucket(name=name, endpoint=endpoint, environ=dict(os.environ))
    if "://" in text:
        raise BuilderError(f"'{text}' is of no kind that is known", help="write a directory, s3://… or hub:OWNER/NAME")
    return site.Directory(Path(text))
