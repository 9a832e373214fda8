"""Wheels that a site makes of those it is given: one for each family of GPUs, and wheel variants.

A wheel variant, as PEP 817 and 825 draft it, is the same wheel with a label that an installer understands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import json_text
from builder.config import Backend, Framework
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.matrix.variant import Variant, backend_of
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index import simple
from builder.publish.index.picks import Environment
from builder.publish.index.simple import Listing, Uploads
from builder.variant_provider import ABI, COMPUTE, NAMESPACE
from builder.wheel.archive import Bytes, WheelError, pack
from builder.wheel.kernel_wheel import KernelWheel

FILES = "files"
_FOLDER = f"{FILES}/families"
SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
_VARIANT_FILE = "variant.json"
_PROVIDER = {
    "plugin-api": "builder.variant_provider:TorchKernelProvider",
    "requires": ["kernel-wheel-builder"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyWheel:
    """A wheel for one family of GPUs, as the page of its kernel names it."""

    family: Family
    size: int
    root: str
    """The folder of the index for the newest torch that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByFamily:
    """The wheels and indexes for families of GPUs of one kernel."""

    roots: tuple[str, ...] = ()
    """The folders of the indexes."""
    wheels: Mapping[Path, tuple[FamilyWheel, ...]] = field(default_factory=dict)
    """The parts of each wheel that was split, by the path of the whole one."""


def add_families(
    name: str,
    fitting: Mapping[Environment, Sequence[KernelWheel]],
    whole: Mapping[Path, Listing],
    uploaded: Uploads,
    into: tuple[dict[str, bytes | Path], dict[str, bytes]],
) -> ByFamily:
    """Add the wheels for families and their indexes to the files of a site, and return what there is of them.

    A wheel without device code is in the index of every family as it is; so is one with code for a single family.

    Args:
        name: The project.
        fitting: Its wheels for each environment.
        whole: How each of them is listed.
        uploaded: When they came into the index.
        into: Files that never change, and pages of indexes.

    Raises:
        WheelError: the device code of a wheel cannot be read.
    """
    fixed, indexes = into
    made: dict[Path, Mapping[Family, Listing]] = {}
    roots = []
    split: dict[Path, dict[Family, FamilyWheel]] = {}
    oldest_first = sorted(fitting.items(), key=lambda each: (each[0][0].major, each[0][0].minor, each[0][1]))
    for environment, wheels in oldest_first:
        if backend_of(environment[1]) is not Backend.CUDA:
            continue
        listed: dict[Family, list[Listing]] = {}
        for wheel in wheels:
            path = wheel.wheel.path
            if path not in made:
                made[path] = _of_wheel(wheel, whole[path], uploaded, fixed)
            for family, listing in made[path].items():
                listed.setdefault(family, []).append(listing)
                if listing is not whole[path]:
                    place = simple.root_for(environment, str(family))
                    split.setdefault(path, {})[family] = FamilyWheel(family=family, size=listing.size, root=place)
        for family, listings in sorted(listed.items()):
            roots.append(simple.root_for(environment, str(family)))
            indexes |= simple.project(name, listings, root=roots[-1], files=FILES)
    wheels_of = {path: tuple(found[family] for family in sorted(found)) for path, found in split.items()}
    return ByFamily(roots=tuple(roots), wheels=wheels_of)


def _of_wheel(
    wheel: KernelWheel, whole: Listing, uploaded: Uploads, fixed: dict[str, bytes | Path]
) -> Mapping[Family, Listing]:
    """Return how a wheel is listed for each family that it serves, and add what is made for that."""
    found: dict[Family, Listing] = {}
    try:
        served = families.of(wheel)
        if len(served) <= 1:
            return dict.fromkeys(served or families.all_known(), whole)
        for family, made in families.split(wheel):
            found[family] = Listing(
                project=whole.project,
                version=whole.version,
                filename=made.name,
                sha256=sha256(made.content),
                size=len(made.content),
                core=whole.core,
                uploaded=uploaded.get(wheel.wheel.path.name),
                folder="families/",
            )
            fixed[f"{_FOLDER}/{made.name}"] = made.content
            fixed[f"{_FOLDER}/{made.name}{simple.METADATA_SUFFIX}"] = whole.core
    except BuilderError as error:
        raise WheelError(f"'{wheel.wheel.path}' cannot be split: {error.message}", help=error.help) from error
    return found


def as_variant(kernel_wheel: KernelWheel, uploaded: str | None = None) -> tuple[Listing, bytes]:
    """Return a wheel as a variant: its label is at the end of its name, and its version has none."""
    wheel = kernel_wheel.wheel
    version = wheel.version.public
    distribution, _version, *tags = wheel.path.name.removesuffix(".whl").split("-")
    old, new = wheel.dist_info, f"{distribution}-{version}.dist-info"
    label = kernel_wheel.variant.label
    core = kernel_wheel.core.replace(f"\nVersion: {wheel.version}\n".encode(), f"\nVersion: {version}\n".encode(), 1)
    members = {
        name.replace(f"{old}/", f"{new}/", 1) if name.startswith(f"{old}/") else name: Bytes(
            member.read(), mode=member.mode
        )
        for name, member in wheel.members.items()
        if name != f"{old}/RECORD"
    }
    members[f"{new}/METADATA"] = Bytes(core)
    members[f"{new}/{_VARIANT_FILE}"] = Bytes(_json(_variants_table({label: variant_properties(kernel_wheel.variant)})))
    content = pack(members, dist_info=new)
    listing = Listing(
        project=wheel.name,
        version=version,
        filename="-".join([distribution, version, *tags, label]) + ".whl",
        sha256=sha256(content),
        size=len(content),
        core=core,
        uploaded=uploaded,
    )
    return listing, content


def variant_indexes(wheels: Sequence[KernelWheel]) -> Mapping[str, bytes]:
    """Return `<name>-<version>-variants.json` for each version of each kernel."""
    found: dict[str, dict[str, Any]] = {}
    for kernel_wheel in wheels:
        distribution = kernel_wheel.wheel.path.name.split("-")[0]
        name = f"{kernel_wheel.wheel.name}/{distribution}-{kernel_wheel.wheel.version.public}-variants.json"
        found.setdefault(name, {})[kernel_wheel.variant.label] = variant_properties(kernel_wheel.variant)
    return {name: _json(_variants_table(found[name])) for name in sorted(found)}


def variant_properties(variant: Variant) -> dict[str, dict[str, list[str]]]:
    """Return what a wheel needs: an ABI, and a compute platform that PyTorch must have been built for."""
    version = "" if variant.version is None else f"{variant.version.major}{variant.version.minor}"
    match variant.framework:
        case Framework.TORCH:
            needs = {ABI: f"stable{version}" if variant.stable else f"torch{version}", COMPUTE: variant.compute}
        case Framework.TORCH_NOARCH:
            needs = {ABI: "any", COMPUTE: variant.backend.value}
        case Framework.TVM_FFI | Framework.CTYPES:
            needs = {ABI: "any", COMPUTE: variant.compute}
    return {NAMESPACE: {feature: [value] for feature, value in needs.items()}}


def _variants_table(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": [NAMESPACE]},
        "providers": {NAMESPACE: _PROVIDER},
        "variants": dict(labels),
    }


def _json(value: object) -> bytes:
    return json_text.document(value, indent=1, ordered=True).encode()
