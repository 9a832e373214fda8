"""The simple repository API, in HTML and in JSON, for installers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from urllib.parse import quote

from packaging.version import Version

from builder import json_text, templates
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.publish.index.picks import Environment, environment_name
from builder.wheel import fields
from builder.wheel.kernel_wheel import KernelWheel

API_VERSION = "1.4"
METADATA_SUFFIX = ".metadata"
Uploads = Mapping[str, str]
"""Times by the names of wheels, those that are known, as `2026-08-01T00:00:00Z`."""
NO_UPLOADS: Uploads = {}
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_DATE = 10
"""The number of characters of a time that are its day."""
_FRAMEWORK = re.compile(r"(?:torch|apache-tvm-ffi)(?![A-Za-z0-9._-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A wheel as an index lists it."""

    project: str
    version: str
    filename: str
    sha256: str
    size: int
    core: bytes
    """Its METADATA file."""
    uploaded: str | None = None
    """The time at which it came into the index, if that is known."""
    folder: str = ""
    """Its folder among the files of its index."""

    @classmethod
    def of(cls, kernel_wheel: KernelWheel, uploaded: str | None = None) -> "Listing":
        """Return what is listed of a wheel."""
        return cls(
            project=kernel_wheel.wheel.name,
            version=str(kernel_wheel.wheel.version),
            filename=kernel_wheel.wheel.path.name,
            sha256=kernel_wheel.sha256,
            size=kernel_wheel.size,
            core=kernel_wheel.core,
            uploaded=uploaded,
        )


def root_for(environment: Environment, gpus: str | None = None) -> str:
    """Return where in the site the index for an environment is, and for a family of GPUs, such as `sm90`."""
    return f"for/{environment_name(environment)}{'' if gpus is None else f'-{gpus}'}/simple"


def root(names: Sequence[str], *, root: str) -> dict[str, bytes]:
    """Return the first pages of an index at `root`, which has these projects."""
    return {
        f"{root}/index.html": templates.page("simple-root.html.j2", api_version=API_VERSION, projects=names),
        f"{root}/index.json": _json({"meta": _META, "projects": [{"name": name} for name in names]}),
    }


_META = {"api-version": API_VERSION}


def project(name: str, listings: Iterable[Listing], *, root: str, files: str) -> dict[str, bytes]:
    """Return the pages of a project in the index at `root`; `files` leads from the top of the site to the wheels."""
    base = f"{'../' * (root.count('/') + 2)}{files}"
    ordered = sorted(listings, key=lambda listing: (Version(listing.version), listing.filename))
    listed = [_file(listing, base=base) for listing in ordered]
    page = templates.page("simple-project.html.j2", api_version=API_VERSION, name=name, files=listed)
    table = {
        "meta": _META,
        "name": name,
        "project-status": {"status": "active"},
        "versions": list(dict.fromkeys(listing.version for listing in ordered)),
        "files": listed,
    }
    return {f"{root}/{name}/index.html": page, f"{root}/{name}/index.json": _json(table)}


def _file(listing: Listing, *, base: str) -> dict[str, object]:
    quoted, facts = _facts(listing)
    return {"filename": listing.filename, "url": f"{base}/{listing.folder}{quoted}", **facts}


@lru_cache(maxsize=1 << 12)
def _facts(listing: Listing) -> tuple[str, Mapping[str, object]]:
    """Return what is the same of a wheel in every index: its name in an address, and what is said of it."""
    metadata = {"sha256": sha256(listing.core)}
    requires_python = fields.read(listing.core)["Requires-Python"]
    return quote(listing.filename), {
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


def requires(kernel_wheel: KernelWheel) -> tuple[str, ...]:
    """Return what must be installed besides the framework; that one differs from wheel to wheel."""
    found = map(str, kernel_wheel.fields.get_all("Requires-Dist", []))
    return tuple(requirement for requirement in found if not _FRAMEWORK.match(requirement))


def time_of(seconds: float) -> str:
    """Return the time that is so many seconds after the beginning of 1970."""
    return _written(datetime.fromtimestamp(seconds, timezone.utc))


def parse_time(text: str) -> str:
    """Return a time that a user wrote: a day, or a time; in UTC where it does not say.

    Raises:
        BuilderError: it is none.
    """
    try:
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # 3.10 knows no Z
        return _written(found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc))
    except (ValueError, OverflowError):
        raise BuilderError(
            f"'{text}' is not a time", help="write 'now', a day such as '2026-08-01', or '2026-08-01T12:30:00Z'"
        ) from None


def is_time(text: object) -> bool:
    """Whether a text of a manifest is a time as it is written here."""
    return isinstance(text, str) and _TIME.fullmatch(text) is not None


def day_of(wheels: Iterable[KernelWheel], uploads: Uploads) -> str:
    """Return the day on which a version came into the index; nothing where that of any of its wheels is not known.

    It is that of its first wheel: one for a new PyTorch, which comes later, makes no new version.
    """
    found = [uploads.get(each.wheel.path.name) for each in wheels]
    known = [time for time in found if time is not None]
    return min(known)[:_DATE] if known and len(known) == len(found) else ""


def _written(time: datetime) -> str:
    return time.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
