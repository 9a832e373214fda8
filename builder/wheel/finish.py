"""Finish a compiled wheel: set its file name, tags and metadata, and pack it reproducibly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from builder.binary import policies
from builder.binary.extension import Extension
from builder.config import Config
from builder.errors import AuditError, BuilderError
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.metadata import METADATA_FILE, KernelMetadata, RebuildInputs
from builder.wheel import core_metadata, sbom
from builder.wheel.archive import Bytes, Wheel, pack
from builder.wheel.options import MANYLINUX, BuildOptions

_LIBRARIES = (".so", ".dylib", ".pyd")
_OF_PYTHON = ".abi3.so"
"""The suffix of a library whose sources include Python's headers."""
_LIBRARY_MODE = 0o755
_ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedWheel:
    """A wheel's file name and bytes."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """Facts about the build for the finished wheel."""

    framework_version: str
    inputs: RebuildInputs
    archs: tuple[str, ...] | None = None
    shared_code: tuple[str, ...] = ()
    """The `archs` that run the machine code of another one, because the compiler wrote the same code for both."""
    options: BuildOptions = field(default_factory=BuildOptions)
    description: str = ""
    """The text of the file in `wheel.readme`."""
    fixed: bool = True
    """Whether the archive has fixed times and order, as every delivered wheel does."""


def finish(raw: Wheel, *, kernel: Kernel, cell: Cell, facts: BuildFacts) -> FinishedWheel:
    """Return the wheel for users, made from scikit-build-core's wheel.

    Raises:
        BuilderError: the requested version does not fit, or the wheel has no package.
    """
    config = kernel.config
    module = config.general.name.module
    package = _package(raw, module)
    version = wheel_version(config, cell, facts.options)
    tag = _tag(cell, package, accepted=facts.options.policy)
    metadata = KernelMetadata.read(package[METADATA_FILE].content).built(
        {name: member.content for name, member in package.items()},
        archs=facts.archs,
        inputs=facts.inputs,
        only=facts.options.only,
        shared_code=facts.shared_code,
    )
    package[METADATA_FILE] = Bytes(metadata.text.encode())
    distribution = canonicalize_name(config.general.name).replace("-", "_")
    dist_info = f"{distribution}-{version}.dist-info"
    members = {f"{module}/{name}": member for name, member in package.items()}
    prefix = f"{raw.dist_info}/licenses/"
    licenses = {
        name.removeprefix(prefix): Bytes(member.read())
        for name, member in raw.members.items()
        if name.startswith(prefix)
    }
    members |= {f"{dist_info}/licenses/{name}": member for name, member in licenses.items()}
    members[f"{dist_info}/METADATA"] = Bytes(
        core_metadata.metadata_file(
            config,
            cell,
            version=version,
            framework_version=facts.framework_version,
            license_files=licenses,
            description=facts.description,
        ).encode()
    )
    members[f"{dist_info}/WHEEL"] = Bytes(core_metadata.wheel_file(tag=tag, pure=cell.noarch).encode())
    members[f"{dist_info}/{sbom.bill_name(config)}"] = Bytes(
        sbom.bill(
            config=config,
            cell=cell,
            version=version,
            framework_version=facts.framework_version,
            package=package,
            toolchain=facts.inputs.toolchain or {},
        )
    )
    content = pack(members, dist_info=dist_info, epoch=facts.options.epoch if facts.fixed else None)
    return FinishedWheel(name=f"{distribution}-{version}-{tag}.whl", content=content)


def wheel_version(config: Config, cell: Cell, wanted: BuildOptions) -> str:
    """Return the version of a wheel, with the cell's label; a quick build gets a developmental release.

    Raises:
        BuilderError: the requested version is invalid, has a label, or contradicts `general.version`.
    """
    text = wanted.version if wanted.version is not None else config.wheel_version
    try:
        version = PackageVersion(text)
    except InvalidVersion as error:
        raise BuilderError(f"'{text}' is not a version", help="write it as in '1.2.0' (PEP 440)") from error
    if version.local is not None or version.major != config.general.version:
        raise BuilderError(
            f"'{text}' does not fit general.version = {config.general.version}",
            help=f"the major must be {config.general.version}, and the label after '+' is the builder's own",
        )
    if wanted.only and not version.is_devrelease:
        # Installers choose a developmental release only if nothing else is available.
        version = PackageVersion(f"{version}.dev0")
    return f"{version}+{cell.name.label}" if wanted.label else str(version)


def _package(raw: Wheel, module: str) -> dict[str, Bytes]:
    prefix = f"{module}/"
    package = {
        name.removeprefix(prefix): Bytes(member.read(), mode=_LIBRARY_MODE if name.endswith(_LIBRARIES) else 0o644)
        for name, member in raw.members.items()
        if name.startswith(prefix)
    }
    if METADATA_FILE not in package:
        raise BuilderError(f"the build of '{raw.name}' left no {prefix}{METADATA_FILE}")
    return package


def _tag(cell: Cell, package: Mapping[str, Bytes], *, accepted: str) -> str:
    if cell.noarch:
        return "py3-none-any"
    machine, system = cell.system.split("-")
    if cell.python is not None:
        interpreter = f"{cell.python}-{cell.python}"
    else:
        interpreter = "cp39-abi3" if any(name.endswith(_OF_PYTHON) for name in package) else "py3-none"
    if system == "darwin":
        oldest = str(cell.backend.facts.macos).replace(".", "_")
        return f"{interpreter}-macosx_{oldest}_{_ARCHITECTURE[machine]}"
    extensions = [Extension.read(name, member.content) for name, member in package.items() if name.endswith(_LIBRARIES)]
    return f"{interpreter}-{_manylinux(extensions, machine, accepted=accepted)}_{machine}"


def _manylinux(extensions: list[Extension], machine: str, *, accepted: str) -> str:
    """Return the policy for the tag: the lowest that the symbols allow, but not below that of torch's wheels."""
    lowest = policies.lowest_policy(extensions, machine)
    order = [each.name for each in policies.policies(machine)]
    if accepted not in order:
        raise BuilderError(f"'{accepted}' is not a manylinux policy", help=f"there are {', '.join(order)}")
    if lowest.policy is None or order.index(lowest.name) > order.index(accepted):
        raise AuditError(
            f"the libraries need {lowest.name}, and {accepted} is wanted: {', '.join(lowest.offending)}",
            help="do without them, or accept the newer policy with --manylinux",
        )
    return max(lowest.name, MANYLINUX, key=order.index)


def archs_of(plan: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """Return the compiled architectures in numerical order; None if the plan has none."""
    found = None if plan is None else plan.get("archs")
    return None if found is None else tuple(found)
