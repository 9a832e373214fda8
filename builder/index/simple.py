"""The simple repository API, in HTML and in JSON, for installers."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from packaging.version import Version

from builder import pages
from builder.shipped import Shipped

API_VERSION = "1.4"
METADATA_SUFFIX = ".metadata"


def render(wheels: Sequence[Shipped], *, root: str, files: str) -> Mapping[str, bytes]:
    """Return the pages of an index at `root`; `files` leads from the top of the site to the wheels."""
    projects: dict[str, list[Shipped]] = {}
    for shipped in wheels:
        projects.setdefault(shipped.wheel.name, []).append(shipped)
    names = sorted(projects)
    result = {
        f"{root}/index.html": pages.render("simple-root.html.j2", api_version=API_VERSION, projects=names),
        f"{root}/index.json": _json({"meta": _META, "projects": [{"name": name} for name in names]}),
    }
    up = "../" * (root.count("/") + 2)
    for name in names:
        listed = [_file(shipped, base=f"{up}{files}") for shipped in sorted(projects[name], key=_order)]
        result[f"{root}/{name}/index.html"] = pages.render(
            "simple-project.html.j2", api_version=API_VERSION, name=name, files=listed
        )
        result[f"{root}/{name}/index.json"] = _json(
            {
                "meta": _META,
                "name": name,
                "project-status": {"status": "active"},
                "versions": [str(version) for version in sorted({shipped.wheel.version for shipped in projects[name]})],
                "files": listed,
            }
        )
    return result


_META = {"api-version": API_VERSION}


def _order(shipped: Shipped) -> tuple[Version, str]:
    return shipped.wheel.version, shipped.wheel.path.name


def _file(shipped: Shipped, *, base: str) -> dict[str, object]:
    name = shipped.wheel.path.name
    metadata = {"sha256": hashlib.sha256(shipped.core).hexdigest()}
    requires_python = shipped.fields["Requires-Python"]
    return {
        "filename": name,
        "url": f"{base}/{quote(name)}",
        "hashes": {"sha256": shipped.sha256},
        "size": shipped.size,
        **({} if requires_python is None else {"requires-python": str(requires_python)}),
        "core-metadata": metadata,
        "dist-info-metadata": metadata,
        "yanked": False,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
