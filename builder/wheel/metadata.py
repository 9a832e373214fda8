"""The metadata of a wheel: METADATA, WHEEL, and metadata.json for the client."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.version import Version

from builder import __version__, json_text
from builder.config import Config, Framework, dependencies, libraries
from builder.kernel import source_set
from builder.matrix import Cell, absent_components, without_absent_extensions
from builder.render.package_metadata import content_type, framework_requirement, python_depends, spdx, urls
from builder.wheel.archive import Bytes
from builder.wheel.digest import digests

_SHARED_CODE = "shared-code"
"""Where `build` of metadata.json has the architectures that run the machine code of others."""


def with_shared_code(build: Mapping[str, Any], archs: Sequence[str]) -> dict[str, Any]:
    """Return `build` of metadata.json with the architectures whose code is the same as that of others, if there are."""
    rest = {key: value for key, value in build.items() if key != _SHARED_CODE}
    return {**rest, _SHARED_CODE: list(archs)} if archs else rest


def shared_code(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the architectures that run the machine code of others, by a metadata.json."""
    build = table.get("build")
    found = build.get(_SHARED_CODE) if isinstance(build, dict) else None
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()


def core_metadata(
    config: Config,
    cell: Cell,
    *,
    version: str,
    framework_version: str,
    license_files: Iterable[str] = (),
    description: str = "",
) -> str:
    """Return the METADATA file; `framework_version` is the torch or tvm-ffi that the wheel was built with."""
    general, readme = config.general, source_set.readme(config)
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", str(general.name)),
        ("Version", version),
        ("Summary", f"The {general.name} kernel, built as {cell.variant}"),
        _license(general.license),
        *(("License-File", name) for name in sorted(license_files)),
        *(("Project-URL", f"{label}, {url}") for label, url in urls(config)),
        ("Requires-Python", ">=3.9"),
        *(("Requires-Dist", requirement) for requirement in requirements(config, cell, framework_version)),
        *(() if readme is None else [("Description-Content-Type", content_type(readme))]),
    ]
    head = "".join(f"{name}: {' '.join(value.split())}\n" for name, value in fields)
    return head if readme is None else f"{head}\n{_lines(description)}"


def _lines(text: str) -> str:
    """Return a text whose lines end in the same way wherever it was saved."""
    return re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff"))


def _license(text: str) -> tuple[str, str]:
    known = spdx(text)
    return ("License", text) if known is None else ("License-Expression", known)  # a lint warns of the first


def requirements(config: Config, cell: Cell, framework_version: str) -> tuple[str, ...]:
    """Return what must be installed with the wheel: the framework its ABI fits, and what build.toml names."""
    packages = [*python_depends(config, cell.backend)]
    if not cell.noarch:
        present = without_absent_extensions(config, cell)
        linked = present.libraries(cell.backend, without=absent_components(present, cell))
        packages += libraries.requirements(linked, config.framework, cell.toolkit)
    framework = () if cell.framework is Framework.CTYPES else (_framework_requirement(cell, framework_version),)
    return (*framework, *dict.fromkeys(packages))


def _framework_requirement(cell: Cell, framework_version: str) -> str:
    known = framework_requirement(cell.framework, noarch=cell.noarch, stable_abi=cell.stable_abi)
    if known is not None:
        return known
    if cell.tvm_ffi is not None:
        # Within a minor version tvm-ffi only adds to its C ABI: an older one may lack what was used.
        least = max(framework_version, dependencies.at_least("tvm-ffi") or framework_version, key=Version)
        return f"apache-tvm-ffi>={least},<{cell.tvm_ffi.major}.{cell.tvm_ffi.minor + 1}"
    return f"torch=={cell.torch}.*"


def wheel_file(*, tag: str, pure: bool) -> str:
    """Return the WHEEL file."""
    interpreter, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {interpreter}-{abi}-{platform}\n" for platform in platforms.split("."))
    generator = f"kernel-wheel-builder ({__version__})"
    return f"Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: {str(pure).lower()}\n{tags}"


def client_metadata(
    rendered: bytes, *, package: Mapping[str, Bytes], archs: tuple[str, ...] | None, build: Mapping[str, Any]
) -> bytes:
    """Complete the metadata.json of a rendered project.

    Args:
        rendered: The file as the project has it.
        package: The files of the variant, by path within it.
        archs: Architectures that were compiled; None keeps those that the file has.
        build: What anybody needs to build the same bytes.
    """
    table = json.loads(rendered)
    if archs is not None:
        table["backend"]["archs"] = list(archs)
    if not table.get("extensions", True):
        del table["extensions"]  # the cell leaves out all that the project may have
    table["digest"] = {"algorithm": "sha256", "files": digests(package)}
    table["provenance"] = {"kernel-builder": {"version": __version__}}
    table["build"] = build
    return json_text.document(table, escaped=False).encode()
