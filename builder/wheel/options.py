"""The options of a wheel: its version, its label, the oldest systems and the GPUs that it runs on."""

from dataclasses import dataclass

from builder.binary.manylinux import MANYLINUX


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelOptions:
    """The options that decide the name and the tag of a wheel."""

    version: str | None = None
    """Its version; None is `<general.version>.0.0`."""
    label: bool = True
    """Whether the version names the cell, as in `1.0.0+torch213.cxx11.cpu`."""
    policy: str = MANYLINUX
    """The newest manylinux policy that the wheel's tag may have; a lower one is taken if the symbols allow it."""
    only: tuple[str, ...] = ()
    """The GPUs that a quick build is for, by their architectures; empty for a full build."""
