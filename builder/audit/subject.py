"""The input of all checks: the claims of a wheel, and each of its libraries, read once."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement

from builder.audit.report import Finding
from builder.audit.resources import WheelResources
from builder.audit.sizes import WheelSizes
from builder.binary.device_image import Group, Image
from builder.binary.extension import Extension
from builder.config.values import Backend, Framework, Version
from builder.matrix.variant import Variant, extension_suffix, python_of
from builder.metadata import METADATA_FILE, KernelMetadata
from builder.untrusted import UntrustedError
from builder.wheel import fields

_LONGEST_REQUIREMENT = 1000
_LONGEST_ID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPromise:
    """The promise of the build that made a wheel; if a field is None, the claim of the wheel itself counts."""

    variant: Variant | None = None
    ops: str | None = None
    archs: tuple[str, ...] | None = None
    extensions: frozenset[str] | None = None
    """The extensions in the cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkClaim:
    """The framework and the backend that a wheel claims to be for."""

    framework: Framework
    backend: Backend
    version: Version | None = None
    """The version of torch, of the stable ABI or of tvm-ffi; None if the wheel does not tell."""
    stable: bool = False

    @classmethod
    def of(cls, variant: Variant) -> "FrameworkClaim":
        """Return the framework and the backend of a variant's name."""
        return cls(framework=variant.framework, backend=variant.backend, version=variant.version, stable=variant.stable)


def requirements(content: bytes) -> Mapping[str, Requirement]:
    """Return the requirements in METADATA by name; other text is skipped, since `layout` reports it."""
    try:
        lines = fields.read(content).get_all("Requires-Dist", [])
    except UntrustedError:
        return {}
    found = filter(None, map(requirement, dict.fromkeys(lines)))
    return {each.name.lower().replace("_", "-"): each for each in found}


def requirement(line: str) -> Requirement | None:
    """Parse a requirement; None for other text, and for one that is unreasonably long or nested."""
    if len(line) > _LONGEST_REQUIREMENT:
        return None
    try:
        return Requirement(line)
    except (InvalidRequirement, RecursionError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFile:
    """A member of the wheel, with its hash."""

    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A shared library of the wheel, and facts that only its bytes tell."""

    extension: Extension
    device_code: frozenset[Group] = frozenset()
    headers: frozenset[Version] = frozenset()
    """The versions of torch whose headers its code was compiled with, as far as the code passes them to torch."""

    @property
    def images(self) -> frozenset[Image]:
        """All its device code."""
        return frozenset().union(*self.device_code)

    @property
    def name(self) -> str:
        """Its name in the wheel."""
        return self.extension.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A wheel, ready to be judged."""

    name: str
    """The normalised distribution name."""
    version: str
    """The version, including its label."""
    dist_info: str
    tags: tuple[str, ...]
    package: str | None = None
    """The package in the wheel; None if no package has the distribution's name."""
    facts: FrameworkClaim | None = None
    files: Mapping[str, MemberFile] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    """The content of files that describe the other files; checks read it through `text`."""
    libraries: tuple[Library, ...] = ()
    refused: tuple[Finding, ...] = ()
    """Findings about members that could not be read."""
    sizes: WheelSizes | None = None
    """The sizes of its parts, where it has more bytes than its kernel allows."""
    resources: WheelResources | None = None
    """The functions of its device code, where its kernel limits them."""
    plan: AuditPromise = field(default_factory=AuditPromise)

    def text(self, file: str) -> bytes:
        """Return the content of a file that describes the others.

        Empty for a missing or too large file, which `layout` or `budget` reports.
        """
        return self.texts.get(file, b"")

    @property
    def module(self) -> str:
        """The Python package, whose name may differ from the distribution's: there, `--` is `-`."""
        return self.package or self.name.replace("-", "_")

    @property
    def metadata(self) -> KernelMetadata:
        """The metadata.json; empty if it is missing or is not a JSON object."""
        return read_metadata(self.text(f"{self.module}/{METADATA_FILE}"))

    @property
    def noarch(self) -> bool:
        """Whether the wheel is pure Python, for any machine."""
        return self.facts is not None and self.facts.framework is Framework.TORCH_NOARCH

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms of the tags, such as `manylinux_2_28_x86_64`."""
        return tuple(sorted({tag.split("-", 2)[2] for tag in self.tags}))

    @property
    def needs_no_python(self) -> bool:
        """Whether the tags promise that the wheel uses none of Python's C API, as `py3-none-…` does."""
        return any(tag.split("-", 2)[1] == "none" for tag in self.tags)

    @property
    def python(self) -> str | None:
        """The only Python of the tags, such as `cp312`, whose whole C API a library may use; None for several."""
        found = {python_of(*tag.split("-", 2)[:2]) for tag in self.tags}
        return next(iter(found)) if len(found) == 1 else None

    @property
    def generated(self) -> str:
        """The generated module of the package, which names the library."""
        return (Framework.TORCH if self.facts is None else self.facts.framework).generated

    @property
    def library(self) -> str:
        """The file of the kernel's main library, by the id in `metadata.json`; empty without an id."""
        ops = (self.plan.ops or self.metadata.ops or "")[:_LONGEST_ID]
        return self.file_of(ops) if ops else ""

    def file_of(self, ops: str) -> str:
        """Return the file name of the library with an id."""
        suffix = ".so" if self.needs_no_python else ".abi3.so"
        if self.python is not None:
            with contextlib.suppress(ValueError):  # `manylinux` reports an invalid platform
                suffix = extension_suffix(self.python, self.platforms[0])
        return f"{self.module}/{ops}{suffix}"

    @property
    def archs(self) -> tuple[str, ...] | None:
        """The planned device architectures, or else those in `metadata.json`."""
        return self.metadata.archs if self.plan.archs is None else self.plan.archs


@lru_cache(maxsize=4)  # all checks read the same file
def read_metadata(content: bytes) -> KernelMetadata:
    """Parse a metadata.json; empty if it is not a JSON object, which `layout` reports."""
    try:
        return KernelMetadata.read(content)
    except UntrustedError:
        return KernelMetadata()
