"""Wheel variants, as PEP 817 and 825 draft them: the same wheels, with a label that an installer understands."""

from collections.abc import Mapping, Sequence
from typing import Any

from builder import json_text
from builder.config import Framework
from builder.hashes import sha256
from builder.matrix.variant import Variant
from builder.publish.index.simple import Listing
from builder.variant_provider import ABI, COMPUTE, NAMESPACE
from builder.wheel.archive import Bytes, pack
from builder.wheel.kernel_wheel import KernelWheel

SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
_FILE = "variant.json"
_PROVIDER = {
    "plugin-api": "builder.variant_provider:TorchKernelProvider",
    "requires": ["kernel-wheel-builder"],
}


def convert(kernel_wheel: KernelWheel, uploaded: str | None = None) -> tuple[Listing, bytes]:
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
    members[f"{new}/{_FILE}"] = Bytes(_json(_table({label: properties(kernel_wheel.variant)})))
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


def index_files(wheels: Sequence[KernelWheel]) -> Mapping[str, bytes]:
    """Return `<name>-<version>-variants.json` for each version of each kernel."""
    found: dict[str, dict[str, Any]] = {}
    for kernel_wheel in wheels:
        distribution = kernel_wheel.wheel.path.name.split("-")[0]
        name = f"{kernel_wheel.wheel.name}/{distribution}-{kernel_wheel.wheel.version.public}-variants.json"
        found.setdefault(name, {})[kernel_wheel.variant.label] = properties(kernel_wheel.variant)
    return {name: _json(_table(found[name])) for name in sorted(found)}


def properties(variant: Variant) -> dict[str, dict[str, list[str]]]:
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


def _table(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": [NAMESPACE]},
        "providers": {NAMESPACE: _PROVIDER},
        "variants": dict(labels),
    }


def _json(value: object) -> bytes:
    return json_text.document(value, indent=1, ordered=True).encode()
