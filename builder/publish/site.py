"""Publish a package index: wheels first, pages after them, the manifest last."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.errors import NothingToDoError, PublishError
from builder.hashes import sha256_of
from builder.make import wheel_record as record
from builder.publish.index.site import FILES, MANIFEST
from builder.publish.targets import Target, is_own
from builder.wheel import kernel_wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """The files that a publication sends; until then the target is only read."""

    wheels: tuple[str, ...]
    """Names of the wheels that the target does not list yet."""
    fixed: tuple[str, ...]
    """Paths of all files that never change; those that the target has are not sent again."""
    pages: tuple[str, ...]
    unsandboxed: tuple[str, ...] = ()
    """The new wheels that were built without a sandbox."""
    obstacles: Mapping[str, str | None] = field(default_factory=dict)
    """Why each of the new wheels is not to be published, where something speaks against it."""


def plan(site: Path, target: Target) -> SitePlan:
    """Compare a site with what the target has.

    Raises:
        NothingToDoError: `site` is not an index that `builder index` made.
        PublishError: the site is damaged, the target has wheels that the site lacks, or other ones of the same name.
    """
    manifest = site / MANIFEST
    try:
        content = manifest.read_bytes()
    except OSError as error:
        raise NothingToDoError(
            f"'{site}' is not a package index: {MANIFEST} cannot be read ({error.strerror})",
            help="make one with `builder index DIR --output SITE`",
        ) from error
    own = _listed(content, "files", name=str(manifest))
    if not own:
        raise NothingToDoError(
            f"'{site}' lists no wheels: the run of `builder index` that makes it was not finished", help="run it again"
        )
    listed = {f"{FILES}/{name}": sha256 for name, sha256 in own.items()} | _listed(content, "made", name=str(manifest))
    wrong = [path for path, sha256 in listed.items() if not is_own(site, path) or sha256_of(site / path) != sha256]
    if wrong:
        raise PublishError(
            f"'{site}' is not whole: {', '.join(sorted(wrong))} missing or changed", help="make the index again"
        )
    there = target.read(MANIFEST)
    theirs = {} if there is None else _listed(there, "files", name=f"{target}/{MANIFEST}")
    _check_against(own, theirs, target)
    files = tuple(path for path in sorted(listed) if path.startswith(f"{FILES}/"))
    records = tuple(path for path in files if path.endswith(record.SUFFIX))  # of the last build: they change
    pages = tuple(path for path in sorted(listed) if not path.startswith(f"{FILES}/"))
    wheels = tuple(sorted(own.keys() - theirs.keys()))
    return SitePlan(
        wheels=wheels,
        fixed=tuple(path for path in files if path not in records),
        pages=(*records, *pages),
        unsandboxed=tuple(name for name in wheels if record.sandboxed(site / FILES / name, sha256=own[name]) is False),
        obstacles={name: kernel_wheel.read(site / FILES / name).metadata.not_for_release for name in wheels},
    )


def publish(site: Path, target: Target, todo: SitePlan) -> None:
    """Send what `todo` names; a run that breaks off is taken up by the next.

    Raises:
        PublishError: the target refused, or has another file of the same name.
    """
    target.send(site, todo.fixed, fixed=True)
    target.send(site, todo.pages, fixed=False)
    target.send(site, (MANIFEST,), fixed=False)


def _listed(content: bytes, key: str, *, name: str) -> dict[str, str]:
    """Return the files that a manifest lists with their digests: wheels as `files`, and what is `made` of them."""
    try:
        files = json.loads(content)[key]
        return {str(wheel): str(sha256) for wheel, sha256 in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PublishError(f"'{name}' is not the manifest of an index: {error}", help="make the index again") from error


def _check_against(own: Mapping[str, str], theirs: Mapping[str, str], target: Target) -> None:
    changed = sorted(name for name in own.keys() & theirs.keys() if own[name] != theirs[name])
    if changed:
        raise PublishError(
            f"'{target}' has other files named {', '.join(changed)}",
            help="a published wheel never changes: build it with another --wheel-version",
        )
    lost = sorted(theirs.keys() - own.keys())
    if lost:
        raise PublishError(
            f"'{target}' has wheels that this site lacks, and would no longer list: {', '.join(lost)}",
            help="fetch them into the directory of wheels, and make the index of all",
        )
