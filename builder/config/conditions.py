"""The table `when` of a component or an extension: the cells in which it is compiled."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from builder.config.values import CudaCapability, InvalidValueError, RocmArch, System, Text, Version
from builder.wording import quoted

_OPERATORS: Mapping[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<) *([0-9]{1,9}\.[0-9]{1,9})", re.ASCII)
_LAST = 999_999_999


class VersionRange(Text):
    """A range of versions, such as `>=12.8,<14.0`: every clause must hold for the major and minor version."""

    __slots__ = ()

    pattern = r" *(?:>=|<=|==|!=|>|<) *[0-9]{1,9}\.[0-9]{1,9} *(?:, *(?:>=|<=|==|!=|>|<) *[0-9]{1,9}\.[0-9]{1,9} *)*"
    code = "B042"
    kind = "a range of versions"
    rule = "write clauses of '>=', '<=', '==', '!=', '>', '<' and MAJOR.MINOR, with commas, as in '>=12.8,<14.0'"

    def __new__(cls, text: str) -> "Any":
        """Refuse a range that contains no version."""
        found: VersionRange = super().__new__(cls, text)
        if not any(version in found for version in found._edges()):
            raise InvalidValueError(
                f"no version is in {quoted(text)}", code=cls.code, help="remove one of the clauses that contradict"
            )
        return found

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the range that a single version, perhaps with a patch number, stands for."""
        found = re.fullmatch(r" *(>=|<=|==|!=|>|<|=|~=)? *([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:[.*].*)?", text, re.ASCII)
        if found is None:
            return None
        sign = {None: ">=", "=": "==", "~=": ">="}.get(found[1], found[1])
        return f"write '{sign}{found[2]}.{found[3] or 0}'"

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses without spaces, as in `>=12.8`."""
        return tuple(f"{sign}{version}" for sign, version in self._parts())

    def __contains__(self, version: object) -> bool:
        return isinstance(version, Version) and all(_OPERATORS[sign](version, bound) for sign, bound in self._parts())

    def _parts(self) -> tuple[tuple[str, Version], ...]:
        return tuple((found[1], Version(found[2])) for found in _CLAUSE.finditer(str(self)))

    def _edges(self) -> tuple[Version, ...]:
        """Return test versions, one of which is in the range unless it is empty: each bound, and its neighbours."""
        numbers = {(0, 0), (_LAST, _LAST)}
        for _, bound in self._parts():
            numbers |= {(bound.major, max(0, bound.minor + step)) for step in (-1, 0, 1)}
            numbers.add((max(0, bound.major - 1), _LAST))
        return tuple(Version(f"{major}.{minor}") for major, minor in sorted(numbers))


class DeviceArch(Text):
    """A GPU architecture: a CUDA capability such as `9.0a`, or one of ROCm such as `gfx942`."""

    __slots__ = ()

    pattern = r"(?:[0-9]+\.[0-9][af]?|gfx[0-9a-f]+)"
    code = "B042"
    kind = "a GPU architecture"
    rule = "write a CUDA capability without '+PTX', or one of ROCm, as in '9.0a' or 'gfx942'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the architecture that was meant."""
        return CudaCapability.remedy(text.removesuffix("+PTX")) or RocmArch.remedy(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The cells in which something is compiled: every entry must hold; in other cells it is left out."""

    KEYS: ClassVar[tuple[str, ...]] = ("cuda", "torch", "system", "arch")

    cuda: VersionRange | None = None
    """Versions of the CUDA toolkit, as in `">=12.8"`."""
    torch: VersionRange | None = None
    """Versions of the PyTorch that the cell is built with, as in `">=2.10,<2.13"`."""
    system: System | tuple[System, ...] | None = None
    """The system, or one of several, as in `"x86_64-linux"`."""
    arch: DeviceArch | tuple[DeviceArch, ...] | None = None
    """A GPU architecture, or one of several, for which the cell compiles the component (or a component of the
    extension)."""

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems on which it may hold; empty for all."""
        return _several(self.system)

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures of which one is required; empty if none is."""
        return _several(self.arch)


def _several(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else value
