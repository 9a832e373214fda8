"""GPUs by their products and architectures, and the code that nvcc makes for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from builder import codec, toml
from builder.config.dependencies import Known
from builder.config.values import Backend, CudaCapability, InvalidValueError, Text, Version
from builder.resources import DATA
from builder.wording import quoted

_PTX = "+PTX"
_SUFFIXES = "af"
_HALF = r"[0-9]+\.[0-9][af]?"
_SHORT = re.compile(r"(?=.*[0-9])[A-Z][A-Za-z0-9]+")


class CudaCode(NamedTuple):
    """The code that one step of nvcc makes."""

    virtual: str
    """The capability that sources are compiled for, which decides their features and macros: `10.0f`."""
    real: str
    """The capability in the mark of the machine code, by which a loader chooses: `10.3f`."""

    @property
    def name(self) -> str:
        """The shortest name: a capability, or a pair if the machine code is for another GPU."""
        return self.virtual if self.virtual == self.real else f"{self.virtual}:{self.real}"

    @property
    def gpu(self) -> str:
        """The GPU of the machine code, without a suffix."""
        return plain(self.real)

    @property
    def place(self) -> tuple[str, bool]:
        """The GPU, and whether the code runs only there: a fat binary may have one image for each such place.

        If two images have the same place, nvcc keeps both or refuses both. Code with `a` may stand next to code without
        it.
        """
        return self.gpu, self.real.endswith("a")

    @property
    def special(self) -> bool:
        """Whether the code runs only on its GPU or family."""
        return self.real[-1:] in _SUFFIXES

    @property
    def obstacle(self) -> str | None:
        """Why no nvcc makes this code; None if one may."""
        own, other = Version(plain(self.virtual)), Version(self.gpu)
        if self.virtual == self.real:
            return None
        if self.virtual.endswith("a"):
            return f"what is compiled for {self.virtual} becomes code for {self.virtual} alone"
        if other < own:
            return f"{other} is older than {own}"
        if "f" in {self.virtual[-1], self.real[-1]} and own.major != other.major:
            return f"{other} is not of the family of {own}"
        return None


@lru_cache(maxsize=1024)
def code_of(name: str) -> CudaCode:
    """Return the code for a capability or a pair, ignoring `+PTX`.

    Code compiled for a family is marked by nvcc for the whole family: `10.0f:10.0` is `10.0f`.
    """
    virtual, colon, real = name.removesuffix(_PTX).partition(":")
    if not colon:
        return CudaCode(virtual=virtual, real=virtual)
    family = virtual[-1:] == "f" and real[-1:] not in _SUFFIXES
    return CudaCode(virtual=virtual, real=real + "f" * family)


def plain(capability: str) -> str:
    """Return a capability without its suffix."""
    return capability.rstrip(_SUFFIXES)


class CudaTarget(Text):
    """A CUDA compute capability, such as `9.0a+PTX`, or a pair, such as `8.0:8.6`: code for 8.6 from PTX for 8.0."""

    __slots__ = ()

    pattern = rf"{_HALF}(?:\+PTX|:{_HALF})?"
    code = CudaCapability.code
    kind = CudaCapability.kind
    before = CudaCapability
    rule = f"{CudaCapability.rule}, or a pair such as '8.0:8.6'"

    def __new__(cls, text: str) -> "Any":
        """Refuse a pair that no nvcc can compile."""
        found: CudaTarget = super().__new__(cls, text)
        code = code_of(text)
        if code.obstacle is None:
            return found
        turned, without = code_of(f"{code.real}:{code.virtual}"), code_of(f"{code.virtual}:{code.gpu}")
        if code.virtual.endswith("a"):
            remedy = f"write '{code.virtual}'"
        elif without.obstacle is None:
            remedy = f"write '{without.name}'"
        elif turned.obstacle is None:
            remedy = f"the second is what the code runs on: write '{turned.name}'"
        else:
            remedy = f"write '{code.virtual}', and '{code.gpu}' beside it"
        raise InvalidValueError(f"{quoted(text)}: {code.obstacle}", code=cls.code, help=remedy)

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the target that nvcc's spelling stands for."""
        found = re.fullmatch(r"(?:arch=)?([^,:]*)(?:,code=|:)([^,:+]*)(\+ptx)?", text[:80].lower(), re.ASCII)
        if found is None:
            return CudaCapability.remedy(text)
        halves = [CudaCapability.remedy(half) for half in found.groups()[:2]]
        if None in halves:
            return None
        virtual, real = (str(half).removeprefix("write '").removesuffix("'") for half in halves)
        name = code_of(f"{virtual}:{real}").name
        return f"write '{name}'" + f", and '{virtual}+PTX' beside it" * (found[3] is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A kind of GPU, named by the architecture for which code is chosen."""

    backend: Backend
    arch: str
    also: str | None = None
    """The name of this architecture in older toolkits."""
    names: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Every name of the GPU, in lower case."""
        return tuple(word.lower() for word in (self.arch, self.also, *self.names) if word is not None)


class GpuName(Known):
    """A GPU, by its product or its architecture: `H100`, `9.0`, `gfx942`."""

    __slots__ = ()

    code = "B065"
    kind = "a GPU that is known"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return tuple(_by_name())

    @property
    def gpu(self) -> Gpu:
        """The GPU."""
        return _by_name()[self]


@cache
def table() -> Mapping[str, Any]:
    """Return the tables of `gpus.toml`."""
    return toml.loads((DATA / "gpus.toml").read_text(encoding="utf-8"))


@cache
def known() -> tuple[Gpu, ...]:
    """Return the GPUs, in the file's order."""
    return tuple(codec.decode(Gpu, row) for row in table()["gpu"])


@cache
def _by_name() -> Mapping[str, Gpu]:
    """Return each GPU by its architectures, its products, and unique last words of products, such as `MI300X`."""
    found: dict[str, Gpu] = {}
    for gpu in known():
        short = (name.rpartition(" ")[2] for name in gpu.names)
        words = (gpu.arch, gpu.also, *gpu.names, *filter(_SHORT.fullmatch, short))
        for word in words:
            if word is not None:
                found.setdefault(word, gpu)
    return found
