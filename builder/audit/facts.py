"""What a wheel says it is: its label, its requirements, or the plan of the build that made it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

from packaging.requirements import InvalidRequirement, Requirement

from builder import untrusted
from builder.config.values import Backend, Framework, Version
from builder.matrix.variant import Variant
from builder.untrusted import UntrustedError

_LONGEST_REQUIREMENT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPromise:
    """What the build promised to make; where a field is None, what the wheel says of itself counts."""

    variant: Variant | None = None
    ops: str | None = None
    archs: tuple[str, ...] | None = None
    extensions: frozenset[str] | None = None
    """The extensions that the cell has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkClaim:
    """What a wheel says it is."""

    framework: Framework
    backend: Backend
    version: Version | None = None
    """Version of torch, of the stable ABI or of tvm-ffi; None when it does not say."""
    stable: bool = False

    @classmethod
    def of(cls, variant: Variant) -> "FrameworkClaim":
        """Return the facts that a variant name states."""
        return cls(framework=variant.framework, backend=variant.backend, version=variant.version, stable=variant.stable)


def of_label(label: str, platform: str) -> FrameworkClaim | None:
    """Return the facts of a wheel with a label, or None where label and platform are of no variant."""
    try:
        return FrameworkClaim.of(Variant.of_wheel(label, platform))
    except ValueError:
        return None


def headers(content: bytes) -> Message:
    """Return the headers of METADATA or WHEEL; none if they cannot be read, which `layout` reports."""
    try:
        return untrusted.fields(content)
    except UntrustedError:
        return Message()


def requirements(content: bytes) -> Mapping[str, Requirement]:
    """Return the requirements of METADATA by name; other text is left out, which `layout` reports."""
    lines = headers(content).get_all("Requires-Dist", [])
    found = filter(None, map(requirement, dict.fromkeys(lines)))
    return {each.name.lower().replace("_", "-"): each for each in found}


def requirement(line: str) -> Requirement | None:
    """Return a requirement; None for other text, and for one that is unreasonably long or nested."""
    if len(line) > _LONGEST_REQUIREMENT:
        return None
    try:
        return Requirement(line)
    except (InvalidRequirement, RecursionError):
        return None


def from_contents(*, backend: str | None, metadata: bytes, noarch: bool, plain: bool = False) -> FrameworkClaim | None:
    """Return the facts of a wheel without a label, from its requirements and what its metadata.json has."""
    try:
        known = Backend(str(backend))
    except ValueError:
        return None
    if noarch:
        return FrameworkClaim(framework=Framework.TORCH_NOARCH, backend=known)
    if plain:
        return FrameworkClaim(framework=Framework.CTYPES, backend=known)
    required = requirements(metadata)
    if "torch" not in required:
        tvm_ffi = required.get("apache-tvm-ffi")
        return None if tvm_ffi is None else FrameworkClaim(framework=Framework.TVM_FFI, backend=known)
    for clause in required["torch"].specifier:
        match = re.match(r"([0-9]+\.[0-9]+)(\..*)?$", clause.version)
        if match and clause.operator in (">=", "=="):
            stable = clause.operator == ">="
            return FrameworkClaim(framework=Framework.TORCH, backend=known, version=Version(match[1]), stable=stable)
    return None
