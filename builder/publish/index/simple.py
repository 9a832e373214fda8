"""The simple repository API, in HTML and in JSON, for installers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from packaging.version import Version

from builder import json_text, templates
from builder.hashes import sha256
from builder.publish.index import choice, requirements
from builder.publish.index.choice import Environment
from builder.wheel.kernel_wheel import KernelWheel

API_VERSION = "1.4"
METADATA_SUFFIX = ".metadata"


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
    """When it came into the index, if that is known."""
    folder: str = ""
    """Where it is among the files of its index."""

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

    @property
    def order(self) -> tuple[Version, str]:
        """The place in a list: old versions first."""
        return Version(self.version), self.filename


def root_for(environment: Environment, gpus: str | None = None) -> str:
    """Return where in the site the index for an environment is, and for a family of GPUs, such as `sm90`."""
    return f"for/{choice.name(environment)}{'' if gpus is None else f'-{gpus}'}/simple"


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
    ordered = sorted(listings, key=lambda listing: listing.order)
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
    requires_python = requirements.read(listing.core).python
    return quote(listing.filename), {
        "hashes": {"sha256": listing.sha256},
        "size": listing.size,
        **({} if listing.uploaded is None else {"upload-time": listing.uploaded}),
        **({} if requires_python is None else {"requires-python": requires_python}),
        "core-metadata": metadata,
        "dist-info-metadata": metadata,
        "yanked": False,
    }


def _json(value: object) -> bytes:
    return json_text.document(value, indent=1, escaped=False).encode()
