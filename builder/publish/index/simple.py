"""The simple repository API, in HTML and in JSON, for installers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.version import Version

from builder import json_text, templates
from builder.errors import BuilderError
from builder.hashes import sha256, sha256_of
from builder.publish.index.table import Environment, environment_name
from builder.wheel import fields
from builder.wheel.kernel_wheel import KernelWheel

API_VERSION = "1.4"
METADATA_SUFFIX = ".metadata"
FILES = "files"
"""The folder of the wheels in a site."""
_META = {"api-version": API_VERSION}
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A wheel, as a site's indexes list it."""

    project: str
    version: Version
    path: str
    """Its path in the site."""
    content: bytes | Path
    sha256: str
    size: int
    core: bytes
    """The content of its METADATA."""
    uploaded: str | None = None
    """The time of its upload, if known."""

    @classmethod
    def of(cls, kernel_wheel: KernelWheel, uploaded: str | None = None) -> "Listing":
        """Return the listing of a wheel."""
        return cls(
            project=kernel_wheel.wheel.name,
            version=kernel_wheel.wheel.version,
            path=f"{FILES}/{kernel_wheel.wheel.path.name}",
            content=kernel_wheel.wheel.path,
            sha256=kernel_wheel.sha256,
            size=kernel_wheel.size,
            core=kernel_wheel.core,
            uploaded=uploaded,
        )

    @property
    def filename(self) -> str:
        """The name of its file."""
        return self.path.rpartition("/")[2]

    def made(self, path: str, content: bytes | Path, **changed: Any) -> "Listing":
        """Return the listing of a wheel that was made from this one."""
        if isinstance(content, bytes):
            found, size = sha256(content), len(content)
        else:
            found, size = sha256_of(content), content.stat().st_size
        return replace(self, path=path, content=content, sha256=found, size=size, **changed)


def root_for(environment: Environment, gpus: str | None = None) -> str:
    """Return the path of the index for an environment and, optionally, a family of GPUs such as `sm90`."""
    return f"for/{environment_name(environment)}{'' if gpus is None else f'-{gpus}'}/simple"


def project(root: str, listings: Iterable[Listing], *, tables: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Return the pages of a project in the index at `root` that lists some wheels of it.

    `tables` are further files that are listed, and lie beside these pages.
    """
    more = tables or {}
    up = "../" * (root.count("/") + 2)
    listed = sorted(listings, key=lambda each: (each.version, each.filename))
    name = listed[0].project
    files = [{**(entry := _entry(each)), "url": f"{up}{entry['url']}"} for each in listed]
    files += [
        {"filename": name, "url": quote(name), "hashes": {"sha256": sha256(content)}, "size": len(content)}
        for name, content in more.items()
    ]
    table = {
        "meta": _META,
        "name": name,
        "project-status": {"status": "active"},
        "versions": list(dict.fromkeys(str(each.version) for each in listed)),
        "files": files,
    }
    page = templates.page("simple-project.html.j2", api_version=API_VERSION, name=name, files=files)
    pages = {f"{root}/{name}/index.html": page, f"{root}/{name}/index.json": _json(table)}
    return {f"{root}/{name}/{table}": content for table, content in more.items()} | pages


def first(root: str, projects: Sequence[str]) -> dict[str, bytes]:
    """Return the first page of the index at `root` that has some projects."""
    return {
        f"{root}/index.html": templates.page("simple-root.html.j2", api_version=API_VERSION, projects=projects),
        f"{root}/index.json": _json({"meta": _META, "projects": [{"name": name} for name in projects]}),
    }


@lru_cache(maxsize=1 << 12)
def _entry(listing: Listing) -> Mapping[str, object]:
    """Return an index's entry for a wheel; its address is relative to the top of the site."""
    metadata = {"sha256": sha256(listing.core)}
    requires_python = fields.read(listing.core)["Requires-Python"]
    return {
        "filename": listing.filename,
        "url": quote(listing.path),
        "hashes": {"sha256": listing.sha256},
        "size": listing.size,
        **({} if listing.uploaded is None else {"upload-time": listing.uploaded}),
        **({} if requires_python is None else {"requires-python": str(requires_python)}),
        "core-metadata": metadata,
        "dist-info-metadata": metadata,
        "yanked": False,
    }


def _json(value: object) -> bytes:
    return json_text.document(value, indent=1, escaped=False).encode()


def time_of(seconds: float) -> str:
    """Format a time in seconds since 1970."""
    return _written(datetime.fromtimestamp(seconds, timezone.utc))


def parse_time(text: str) -> str:
    """Parse a user's day or time, in UTC unless it has a time zone.

    Raises:
        BuilderError: the text is neither a day nor a time.
    """
    try:
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # 3.10 rejects Z
        return _written(found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc))
    except (ValueError, OverflowError):
        raise BuilderError(
            f"'{text}' is not a time", help="write 'now', a day such as '2026-08-01', or '2026-08-01T12:30:00Z'"
        ) from None


def is_time(text: object) -> bool:
    """Whether a text in a manifest is a time in this format."""
    return isinstance(text, str) and _TIME.fullmatch(text) is not None


def _written(time: datetime) -> str:
    return time.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
