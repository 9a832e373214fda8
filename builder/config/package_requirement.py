"""A requirement of any Python package, as `[wheel] requires` has it."""

import re

from builder.config.values import Framework, InvalidValueError, Text
from builder.wording import quoted

_OF_FRAMEWORK = {Framework.TORCH: "torch", Framework.TORCH_NOARCH: "torch", Framework.TVM_FFI: "apache-tvm-ffi"}
"""What the wheels of a framework require by themselves."""


class PackageRequirement(Text):
    """A requirement of a Python package by name, in the form of PEP 508."""

    __slots__ = ()

    # Necessary, not sufficient: the grammar of PEP 508 is no regular expression to read.
    pattern = r"[A-Za-z0-9][^\u0000-\u001f@]{0,299}"
    code = "B054"
    kind = "a requirement of a Python package"
    rule = "write its name, and what PEP 508 has after it, as in 'tokenizers>=0.20'"

    @classmethod
    def matches(cls, text: str) -> bool:
        """Whether it names a package of an index."""
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  few configs have one

        if not text.isprintable() or not super().matches(text):
            return False
        try:
            Requirement(text)
        except (InvalidRequirement, RecursionError):
            return False
        return True

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return what to do about an address."""
        return "name a package of an index, and not an address" if "@" in text or "://" in text else None

    @property
    def package(self) -> str:
        """Name of the package, as indexes compare it."""
        return _package_of(self)


def built_with(requirement: PackageRequirement, framework: Framework) -> InvalidValueError | None:
    """Return why a kernel cannot require the framework that it binds to: its wheel does that by itself."""
    package = _OF_FRAMEWORK.get(framework)
    if requirement.package != package:
        return None
    remedy = f"leave it out: the wheel requires the '{package}' that it was built with"
    return InvalidValueError(f"{quoted(requirement)} is required anyway", code=PackageRequirement.code, help=remedy)


def _package_of(requirement: str) -> str:
    from packaging.utils import canonicalize_name  # noqa: PLC0415  few configs have one

    return canonicalize_name(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
