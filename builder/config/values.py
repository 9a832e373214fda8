"""Values of a config that are valid by construction."""

import re
from enum import Enum
from functools import total_ordering



class Backend(str, Enum):
    """A backend that a kernel can name in `general.backends`."""

    CANN = "cann"
    CPU = "cpu"
    CUDA = "cuda"
    METAL = "metal"
    NEURON = "neuron"
    ROCM = "rocm"
    TPU = "tpu"
    XPU = "xpu"

    def __str__(self) -> str:
        return self.value


class Framework(str, Enum):
    """The framework table a config has."""

    TORCH = "torch"
    TORCH_NOARCH = "torch-noarch"
    TVM_FFI = "tvm-ffi"

    def __str__(self) -> str:
        return self.value


@total_ordering
class Version:
    """A version `MAJOR.MINOR`, compared as numbers: 2.9 < 2.10."""

    __slots__ = ("major", "minor")

    major: int
    minor: int

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"([0-9]+)\.([0-9]+)", text, re.ASCII)
        if match is None:
            raise ValueError(f"{text!r} is not a version: write MAJOR.MINOR, such as '2.13'")
        object.__setattr__(self, "major", int(match[1]))
        object.__setattr__(self, "minor", int(match[2]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Version is immutable: {name} = {value!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return (self.major, self.minor) == (other.major, other.minor)

    def __lt__(self, other: "Version") -> bool:
        return (self.major, self.minor) < (other.major, other.minor)

    def __hash__(self) -> int:
        return hash((self.major, self.minor))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def __repr__(self) -> str:
        return f"Version('{self}')"


class KernelName(str):
    """A kernel name: a lower-case letter, then lower-case letters, digits and dashes; no dash at the end."""

    __slots__ = ()

    def __new__(cls, text: str) -> "KernelName":
        if re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", text, re.ASCII) is None:
            raise ValueError(
                f"{text!r} is not a kernel name: use lower-case letters, digits and dashes, "
                "a letter first and no dash last, as in 'flash-attention'"
            )
        return super().__new__(cls, text)

    @property
    def module(self) -> str:
        """The Python module: the name with `-` as `_`."""
        return self.replace("-", "_")
