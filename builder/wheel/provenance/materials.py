"""The components of a kernel besides its own files: framework, toolkit, header-only libraries and dependencies."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from builder import toml
from builder.config import Config, Framework, dependencies
from builder.config.sources import SourceName
from builder.matrix import Cell
from builder.render.sources import used_sources
from builder.resources import DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A component of the bill."""

    ref: str
    component: dict[str, Any]


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    return toml.loads((DATA / "sbom.toml").read_text(encoding="utf-8"))


def of(config: Config, cell: Cell, *, framework_version: str) -> tuple[Material, ...]:
    """Return the materials of a cell, each once."""
    found = {
        part.ref: part
        for part in (
            *_framework(cell, framework_version),
            *_toolkit(cell),
            *_header_only(config, cell),
            *_foreign(config, cell),
            *_imports(config, cell),
            *_kernels(config, cell),
        )
    }
    return tuple(found[ref] for ref in sorted(found))


def web(url: str) -> str:
    """Return a Git URL as a URL: `host:path` is written `ssh://host/path`."""
    if "://" in url:
        return url
    host, path = url.split(":", 1)
    return f"ssh://{host}/{path}"


def license_of(text: str) -> dict[str, Any]:
    """Return a license as a bill has it: an expression, or the name of one that is none."""
    try:
        return {"expression": str(canonicalize_license_expression(text))}
    except InvalidLicenseExpression:
        return {"license": {"name": text}}


def _framework(cell: Cell, version: str) -> Iterator[Material]:
    if cell.framework is Framework.CTYPES:
        return
    fact = _facts()["framework"]["tvm-ffi" if cell.framework is Framework.TVM_FFI else "torch"]
    if cell.noarch:
        # Nothing of it is compiled in, and any version will do.
        yield _material(fact | {"description": "imported"}, version=None)
    else:
        yield _material(fact, version=version)


def _toolkit(cell: Cell) -> Iterator[Material]:
    fact = _facts()["toolkit"].get(cell.backend.value)
    if fact is not None and not cell.noarch:
        yield _material(fact, version=cell.toolkit)


def _header_only(config: Config, cell: Cell) -> Iterator[Material]:
    facts = _facts()["component"]
    for part in () if cell.noarch else config.components(cell.backend).values():
        for name in part.depends:
            version = dependencies.table()["component"].get(name, {}).get("cutlass")
            if version is not None:
                yield _material(facts["cutlass"], version=version)
            elif name in facts:
                yield _material(facts[name], version=_by_toolkit(facts[name], cell))


def _foreign(config: Config, cell: Cell) -> Iterator[Material]:
    """Yield the foreign sources that the cell reads, each by its hash and the place that build.toml names."""
    names = () if cell.noarch else used_sources(config, cell.backend)
    for name in names:
        source = config.sources[SourceName(name)]
        if source.git is None:
            found = f"?checksum=sha256:{source.sha256}&download_url={quote(str(source.url), safe=':/')}"
        else:
            found = f"@{source.rev}?vcs_url={quote(f'git+{source.git}@{source.rev}', safe=':/')}"
        component: dict[str, Any] = {
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
        yield Material(ref=f"pkg:generic/{name}{found}", component=component)


def _by_toolkit(fact: dict[str, Any], cell: Cell) -> str | None:
    version = ".".join((cell.toolkit or "").split(".")[:2])
    found = fact.get("toolkit-version", {}).get(version)
    return None if found is None else str(found)


def _imports(config: Config, cell: Cell) -> Iterator[Material]:
    named = map(dependencies.package, config.python_depends(cell.backend))
    for package in (*named, *(requirement.package for requirement in config.requires)):
        yield _material({"name": package, "purl": f"pkg:pypi/{package}", "description": "imported"}, version=None)


def _kernels(config: Config, cell: Cell) -> Iterator[Material]:
    for kernel in config.kernel_depends(cell.backend):
        version = kernel.revision if kernel.version is None else f"v{kernel.version}"
        fact = {"name": kernel.repo_id, "purl": f"pkg:huggingface/{quote(kernel.repo_id)}"}
        yield _material(fact | {"description": "loaded from the hub"}, version=version)


def _material(fact: dict[str, Any], *, version: str | None) -> Material:
    tag = "" if version is None else f"@{quote(fact.get('tag', '') + version, safe='')}"
    purl = f"{fact['purl']}{tag}"
    component = {
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
    return Material(ref=purl, component=component)
