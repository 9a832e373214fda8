"""Wheels that a site makes of those it is given: one for each family of GPUs, and wheel variants.

A wheel variant, as PEP 817 and 825 draft it, is the same wheel with a label that an installer understands.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import Version

from builder import json_text
from builder.config import Framework
from builder.errors import BuilderError
from builder.matrix.variant import Variant
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index.simple import FILES, Listing
from builder.variant_provider import ABI, COMPUTE, NAMESPACE
from builder.wheel.archive import Bytes, WheelError, pack
from builder.wheel.kernel_wheel import KernelWheel

VARIANTS = "variants"
"""The folder of the indexes of wheel variants, and that of their files among the wheels."""
SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
_VARIANT_FILE = "variant.json"
_PROVIDER = {
    "plugin-api": "builder.variant_provider:TorchKernelProvider",
    "requires": ["kernel-wheel-builder"],
}


def by_family(wheel: KernelWheel, whole: Listing) -> Mapping[Family, Listing]:
    """Return how a wheel is listed for each family of GPUs that it serves.

    A wheel without device code is in the index of every family as it is; so is one with code for a single family.

    Raises:
        WheelError: its device code cannot be read.
    """
    try:
        served = families.of(wheel)
        if len(served) <= 1:
            return dict.fromkeys(served or families.all_known(), whole)
        return {
            family: whole.made(f"{FILES}/families/{made.name}", made.content) for family, made in families.split(wheel)
        }
    except BuilderError as error:
        raise WheelError(f"'{wheel.wheel.path}' cannot be split: {error.message}", help=error.help) from error


def as_variant(kernel_wheel: KernelWheel, whole: Listing) -> Listing:
    """Return how a wheel is listed as a variant: its label is at the end of its name, and its version has none."""
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
    members[f"{new}/{_VARIANT_FILE}"] = Bytes(_json({label: variant_properties(kernel_wheel.variant)}))
    path = f"{FILES}/{VARIANTS}/{'-'.join([distribution, version, *tags, label])}.whl"
    return whole.made(path, pack(members, dist_info=new), core=core, version=Version(version))


def variant_indexes(wheels: Iterable[KernelWheel]) -> Mapping[str, bytes]:
    """Return `<name>-<version>-variants.json` for each version of each kernel, by their paths in the index."""
    found: dict[str, dict[str, Any]] = {}
    for kernel_wheel in wheels:
        distribution = kernel_wheel.wheel.path.name.split("-")[0]
        name = f"{kernel_wheel.wheel.name}/{distribution}-{kernel_wheel.wheel.version.public}-variants.json"
        found.setdefault(name, {})[kernel_wheel.variant.label] = variant_properties(kernel_wheel.variant)
    return {name: _json(found[name]) for name in sorted(found)}


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


def _json(labels: Mapping[str, Any]) -> bytes:
    table = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": [NAMESPACE]},
        "providers": {NAMESPACE: _PROVIDER},
        "variants": labels,
    }
    return json_text.document(table, indent=1, ordered=True).encode()
