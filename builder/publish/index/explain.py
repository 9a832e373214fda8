"""What the indexes of wheel variants have for a machine that is not this one, as an installer with variants chooses."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from builder import json_text
from builder.audit import gpus
from builder.config import Backend
from builder.config.gpus import Gpu
from builder.errors import BuilderError, NothingToDoError
from builder.publish.index.variants import NULL, VARIANTS, Properties
from builder.wording import size

_CAPABILITY = re.compile(r"(?:sm_?)?([0-9]{1,2})\.?([0-9])", re.ASCII)
_NEWEST = Version("15.20")
"""The newest driver that the provider of NVIDIA knows."""
_LAST = (1 << 16,)
"""The rank of a property that a variant does not ask for."""
_FEATURES = (
    ("nvidia", "cuda_version_lower_bound"),
    ("nvidia", "sm_arch"),
    ("amd", "gfx_arch"),
)
"""The features of the providers, the one that decides first before the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine, by what its GPU and its driver are; one without a GPU has the wheel for every machine."""

    gpu: Gpu | None
    driver: Version = _NEWEST

    @classmethod
    def parse(cls, text: str) -> "Machine":
        """Return the machine that a user names: `cpu`, `H100`, `9.0`, `gfx942`, `10.7:13.0` with its driver's CUDA.

        Raises:
            BuilderError: it is none.
        """
        name, colon, driver = text.partition(":")
        if name == "cpu" and not colon:
            return cls(gpu=None)
        found = _CAPABILITY.fullmatch(name.lower())
        arch = "" if found is None else f"{found[1]}.{found[2]}"
        gpu = gpus.named(name) if found is None else Gpu(backend=Backend.CUDA, arch=arch, names=(arch,))
        if colon and re.fullmatch(r"[0-9]{2}\.[0-9]{1,2}", driver, re.ASCII) is None:
            remedy = "write 'H100:13.0' for a driver of CUDA 13.0"
            raise BuilderError(f"'{driver}' is not a release of CUDA", help=remedy)
        return cls(gpu=gpu, driver=Version(driver) if colon else _NEWEST)

    def label(self, variants: Mapping[str, Properties]) -> str | None:
        """Return the label of the variant that it gets; None where it has none of them."""
        ranks = [(rank, label) for label, each in variants.items() if (rank := self._rank(each)) is not None]
        return min(ranks)[1] if ranks else None

    def _rank(self, properties: Properties) -> tuple[tuple[int, ...], ...] | None:
        """Return where a variant comes in the order; None where the machine lacks what it asks for."""
        asked = {(space, feature): values for space, each in properties.items() for feature, values in each.items()}
        if not asked.keys() <= set(_FEATURES):
            return None
        found = []
        for space, feature in _FEATURES:
            values = asked.get((space, feature))
            ranks = [rank for each in values or () if (rank := self._value(feature, each)) is not None]
            if values is not None and not ranks:
                return None
            found.append(min(ranks, default=_LAST))
        return tuple(found)

    def _value(self, feature: str, value: str) -> tuple[int, ...] | None:
        """Return how far a value is from the best that the machine has; None where it does not have it."""
        if self.gpu is None:
            return None
        if self.gpu.backend is not Backend.CUDA or feature == "gfx_arch":
            return (0,) if feature == "gfx_arch" and value == self.gpu.arch else None
        if feature == "cuda_version_lower_bound":
            bound = Version(value)
            return (-bound.major, -bound.minor) if bound <= self.driver else None
        major, minor = map(int, self.gpu.arch.split("."))
        code = int(value.removesuffix("_real"))
        return (minor - code % 10,) if code // 10 == major and code % 10 <= minor else None


def explain(site: Path, machine: Machine) -> Iterator[str]:
    """Yield a line for each version of each kernel in each index of variants of a site: the wheels for a machine.

    Raises:
        NothingToDoError: the site has no such index.
    """
    tables = sorted((site / VARIANTS).rglob("*-variants.json"))
    if not tables:
        raise NothingToDoError(f"'{site}' has no index of variants", help="make it with `builder index --variants`")
    for table in tables:
        label = machine.label(json_text.read(table)["variants"])
        version = table.name.removesuffix("-variants.json")
        files = json_text.read(table.parent / "index.json")["files"]
        own = (each for each in files if each["filename"].startswith(f"{version}-"))
        found = (each for each in own if each["filename"].endswith(f"-{label}.whl"))
        wheels = ", ".join(f"{each['filename']} ({size(each['size'])})" for each in found)
        place = table.parents[1].relative_to(site).as_posix()
        said = "nothing" if label is None else "the wheel for every machine" if label == NULL else label
        yield f"{place} {version}: {said}" + (f": {wheels}" if wheels else "")
