"""Write the wheel's bill of materials in `.dist-info/sboms/`: CycloneDX, as JSON."""

import uuid
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from builder import __version__, json_text, toml, untrusted
from builder.config import Config, Framework, dependencies
from builder.config.sources import ForeignSource, SourceName
from builder.hashes import sha256
from builder.matrix import Cell
from builder.metadata import METADATA_FILE
from builder.render.external_sources import used_sources
from builder.resources import DATA
from builder.untrusted import UntrustedError
from builder.wheel.archive import Bytes

SPEC_VERSION = "1.6"
_NAMESPACE = uuid.UUID("6f0fbd0e-3f0b-5d3c-9d5a-6f1f0a0c7c11")


Component = dict[str, Any]
"""A component of a bill, in CycloneDX's form."""


def bill_name(config: Config) -> str:
    """Return the path of the bill in the `.dist-info` directory (PEP 770)."""
    return f"sboms/{canonicalize_name(config.general.name)}.cdx.json"


def bill(
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
        cell: The cell.
        version: The wheel's whole version, with its label.
        framework_version: The torch or tvm-ffi used in the build.
        package: The files of the Python package, by their paths in it.
        toolchain: Versions of the compilers, by name.
    """
    root = _root(config, version) | {"properties": [{"name": "kernel-wheel-builder:variant", "value": cell.variant}]}
    found = {part["bom-ref"]: part for part in _materials(config, cell, framework_version)}
    tool = {
        "type": "application",
        "name": "kernel-wheel-builder",
        "version": __version__,
        "purl": f"pkg:pypi/kernel-wheel-builder@{__version__}",
    }
    table = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {"component": root, "tools": {"components": [tool]}},
        "components": [*(found[ref] for ref in sorted(found)), *_files(package)],
        "dependencies": [
            {"ref": root["bom-ref"], "dependsOn": sorted(found)},
            *({"ref": ref} for ref in sorted(found)),
        ],
    }
    if toolchain:
        compilers = [
            {"type": "application", "bom-ref": f"tool:{name}", "name": name, "version": str(toolchain[name])}
            for name in sorted(toolchain)
        ]
        table["formulation"] = [{"bom-ref": "toolchain", "components": compilers}]
    return _numbered(table)


def with_files(bill: bytes, package: Mapping[str, Bytes]) -> bytes:
    """Return a bill for the same kernel with other files in its package.

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
    """Return a bill as JSON, with a serial number derived from its content."""
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
        "licenses": [license_of(general.license)],
    }
    if general.source is not None:
        root["externalReferences"] = [{"type": "vcs", "url": web(general.source)}]
    if general.upstream is not None:
        origins = [{"type": "vcs", "url": web(url)} for url in (general.upstream, *general.more_upstreams)]
        root["pedigree"] = {
            "ancestors": [{"type": "library", "name": f"{name} upstream", "externalReferences": origins}]
        }
    return root


def _files(package: Mapping[str, Bytes]) -> list[Component]:
    """Return every file except metadata.json, which changes when the wheel is published on the hub."""
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


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    return toml.loads((DATA / "sbom.toml").read_text(encoding="utf-8"))


def _materials(config: Config, cell: Cell, framework_version: str) -> Iterator[Component]:
    """Yield the components of a kernel other than its own files."""
    facts = _facts()
    if cell.framework is not Framework.CTYPES:
        fact = facts["framework"]["tvm-ffi" if cell.framework is Framework.TVM_FFI else "torch"]
        if cell.noarch:
            # None of it is compiled in, and any version will do.
            yield _material(fact | {"description": "imported"}, version=None)
        else:
            yield _material(fact, version=framework_version)
    if not cell.noarch:
        toolkit = facts["toolkit"].get(cell.backend.value)
        if toolkit is not None:
            yield _material(toolkit, version=cell.toolkit)
        yield from _header_only(config, cell)
        for name in used_sources(config, cell.backend):
            yield _foreign(name, config.sources[SourceName(name)])
    named = map(dependencies.package, config.python_depends(cell.backend))
    for package in (*named, *(requirement.package for requirement in config.wheel.requires)):
        yield _material({"name": package, "purl": f"pkg:pypi/{package}", "description": "imported"}, version=None)
    for kernel in config.kernel_depends(cell.backend):
        version = kernel.revision if kernel.version is None else f"v{kernel.version}"
        fact = {"name": kernel.repo_id, "purl": f"pkg:huggingface/{quote(kernel.repo_id)}"}
        yield _material(fact | {"description": "loaded from the hub"}, version=version)


def web(url: str) -> str:
    """Return a Git URL as a URL: `host:path` becomes `ssh://host/path`."""
    if "://" in url:
        return url
    host, path = url.split(":", 1)
    return f"ssh://{host}/{path}"


def license_of(text: str) -> dict[str, Any]:
    """Return a license for a bill: an SPDX expression, or a name."""
    try:
        return {"expression": str(canonicalize_license_expression(text))}
    except InvalidLicenseExpression:
        return {"license": {"name": text}}


def _header_only(config: Config, cell: Cell) -> Iterator[Component]:
    facts = _facts()["component"]
    for part in config.components(cell.backend).values():
        for name in part.depends:
            version = dependencies.table()["component"].get(name, {}).get("cutlass")
            if version is not None:
                yield _material(facts["cutlass"], version=version)
            elif name in facts:
                toolkit = ".".join((cell.toolkit or "").split(".")[:2])
                yield _material(facts[name], version=facts[name].get("toolkit-version", {}).get(toolkit))


def _foreign(name: str, source: ForeignSource) -> Component:
    """Return a foreign source that a cell reads, with its hash and its address in build.toml."""
    if source.git is None:
        found = f"?checksum=sha256:{source.sha256}&download_url={quote(str(source.url), safe=':/')}"
    else:
        found = f"@{source.rev}?vcs_url={quote(f'git+{source.git}@{source.rev}', safe=':/')}"
    component: Component = {
        "type": "library",
        "bom-ref": f"pkg:generic/{name}{found}",
        "name": name,
        "purl": f"pkg:generic/{name}{found}",
        "scope": "required",
        "description": "source, compiled in",
    }
    if source.rev is not None:
        component["version"] = str(source.rev)
    if source.sha256 is not None:
        component["hashes"] = [{"alg": "SHA-256", "content": str(source.sha256)}]
    if source.license is not None:
        component["licenses"] = [license_of(source.license)]
    return component


def _material(fact: dict[str, Any], *, version: str | None) -> Component:
    tag = "" if version is None else f"@{quote(fact.get('tag', '') + version, safe='')}"
    purl = f"{fact['purl']}{tag}"
    component: Component = {
        "type": "library",
        "bom-ref": purl,
        "name": fact["name"],
        "purl": purl,
        "scope": "required",
        "description": fact["description"],
    }
    if version is not None:
        component["version"] = version
    if "license" in fact:
        component["licenses"] = [{"license": {"id": fact["license"]}}]
    elif "license-name" in fact:
        component["licenses"] = [{"license": {"name": fact["license-name"]}}]
    return component
