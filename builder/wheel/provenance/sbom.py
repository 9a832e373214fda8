"""The bill of materials that a wheel carries in `.dist-info/sboms/`: CycloneDX, in JSON."""

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from packaging.utils import canonicalize_name

from builder import __version__, json_text, untrusted
from builder.config import Config
from builder.hashes import sha256
from builder.matrix import Cell
from builder.metadata import METADATA_FILE
from builder.untrusted import UntrustedError
from builder.wheel.archive import Bytes
from builder.wheel.provenance import materials

SPEC_VERSION = "1.6"
_NAMESPACE = uuid.UUID("6f0fbd0e-3f0b-5d3c-9d5a-6f1f0a0c7c11")


def sbom_name(config: Config) -> str:
    """Return the path of the bill in the `.dist-info` directory (PEP 770)."""
    return f"sboms/{canonicalize_name(config.general.name)}.cdx.json"


def sbom(
    *,
    config: Config,
    cell: Cell,
    version: str,
    framework_version: str,
    package: Mapping[str, Bytes],
    toolchain: Mapping[str, Any],
) -> bytes:
    """Return the bill of a wheel, without times and random numbers.

    Args:
        config: The kernel.
        cell: What was built.
        version: The wheel's whole version, with its label.
        framework_version: The torch or tvm-ffi that it was built with.
        package: The files of the Python package, by path within it.
        toolchain: Versions of the compilers, by name.
    """
    root = _root(config, version) | {"properties": [{"name": "kernel-wheel-builder:variant", "value": cell.variant}]}
    parts = materials.of(config, cell, framework_version=framework_version)
    files = _files(package)
    table = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {"component": root, "tools": {"components": [_tool()]}},
        "components": [*(part.component for part in parts), *files],
        "dependencies": [
            {"ref": root["bom-ref"], "dependsOn": sorted(part.ref for part in parts)},
            *({"ref": part.ref} for part in parts),
        ],
    }
    if toolchain:
        table["formulation"] = [{"bom-ref": "toolchain", "components": _toolchain(toolchain)}]
    return _numbered(table)


def with_files(bill: bytes, package: Mapping[str, Bytes]) -> bytes:
    """Return a bill for a package with other files of the same kernel.

    Raises:
        UntrustedError: it is not a bill of materials.
    """
    table = untrusted.json_object(bill)
    listed = table.get("components")
    if not isinstance(listed, list) or not all(isinstance(part, dict) for part in listed):
        raise UntrustedError("it has no list of components")
    parts = [part for part in listed if part.get("type") != "file"]
    return _numbered({**table, "components": [*parts, *_files(package)]})


def _numbered(table: dict[str, Any]) -> bytes:
    """Return a bill as JSON. The same one has the same number, which is made of the content."""
    table.pop("serialNumber", None)
    number = uuid.uuid5(_NAMESPACE, sha256(json_text.canonical(table)))
    table["serialNumber"] = f"urn:uuid:{number}"
    return json_text.document(table, indent=1, ordered=True, escaped=False).encode()


def _root(config: Config, version: str) -> dict[str, Any]:
    general = config.general
    name = canonicalize_name(general.name)
    purl = f"pkg:pypi/{name}@{quote(version, safe='')}"
    root: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [materials.license_of(general.license)],
    }
    if general.source is not None:
        root["externalReferences"] = [{"type": "vcs", "url": materials.web(general.source)}]
    if general.upstream is not None:
        origins = [{"type": "vcs", "url": materials.web(url)} for url in (general.upstream, *general.more_upstreams)]
        root["pedigree"] = {
            "ancestors": [{"type": "library", "name": f"{name} upstream", "externalReferences": origins}]
        }
    return root


def _tool() -> dict[str, Any]:
    return {
        "type": "application",
        "name": "kernel-wheel-builder",
        "version": __version__,
        "purl": f"pkg:pypi/kernel-wheel-builder@{__version__}",
    }


def _files(package: Mapping[str, Bytes]) -> list[dict[str, Any]]:
    """Return every file but metadata.json, which changes when the wheel is published to the hub."""
    return [
        {
            "type": "file",
            "bom-ref": f"file:{name}",
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": sha256(package[name].content)}],
        }
        for name in sorted(package)
        if name != METADATA_FILE
    ]


def _toolchain(toolchain: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "application", "bom-ref": f"tool:{name}", "name": name, "version": str(toolchain[name])}
        for name in sorted(toolchain)
    ]
