"""Write METADATA and WHEEL, the files that describe a wheel to installers."""

import re
from collections.abc import Iterable

from packaging.version import Version

from builder import __version__
from builder.config import Config, Framework, dependencies, libraries
from builder.kernel import source_set
from builder.matrix import Cell, absent_components, without_absent_extensions
from builder.render.package_metadata import content_type, framework_requirement, python_depends, spdx, urls


def metadata_file(
    config: Config,
    cell: Cell,
    *,
    version: str,
    framework_version: str,
    license_files: Iterable[str] = (),
    description: str = "",
) -> str:
    """Return the METADATA file; `framework_version` is the torch or tvm-ffi used in the build."""
    general, readme = config.general, source_set.readme(config)
    known = spdx(general.license)
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", str(general.name)),
        ("Version", version),
        ("Summary", f"The {general.name} kernel, built as {cell.variant}"),
        ("License", general.license)
        if known is None
        else ("License-Expression", known),  # a lint warns about the first
        *(("License-File", name) for name in sorted(license_files)),
        *(("Project-URL", f"{label}, {url}") for label, url in urls(config)),
        ("Requires-Python", ">=3.9"),
        *(("Requires-Dist", requirement) for requirement in requirements(config, cell, framework_version)),
        *(() if readme is None else [("Description-Content-Type", content_type(readme))]),
    ]
    head = "".join(f"{name}: {' '.join(value.split())}\n" for name, value in fields)
    if readme is None:
        return head
    # The same line ends, wherever the text was saved.
    body = re.sub(r"\r\n?", "\n", description.removeprefix("\ufeff"))
    return f"{head}\n{body}"


def requirements(config: Config, cell: Cell, framework_version: str) -> tuple[str, ...]:
    """Return the wheel's requirements: the framework that fits its ABI, and the packages in build.toml."""
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
        # Within a minor version, tvm-ffi only extends its C ABI: an older version may lack functions.
        least = max(framework_version, dependencies.at_least("tvm-ffi") or framework_version, key=Version)
        return f"apache-tvm-ffi>={least},<{cell.tvm_ffi.major}.{cell.tvm_ffi.minor + 1}"
    return f"torch=={cell.torch}.*"


def wheel_file(*, tag: str, pure: bool) -> str:
    """Return the WHEEL file."""
    interpreter, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {interpreter}-{abi}-{platform}\n" for platform in platforms.split("."))
    generator = f"kernel-wheel-builder ({__version__})"
    return f"Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: {str(pure).lower()}\n{tags}"
