"""An image of device code, and limits on reading all images of a library."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from builder.binary.elf_file import Data
from builder.errors import BuilderError

_LARGEST_BUNDLES = 256 << 20
_MAX_RATIO = 32
"""All compressed bundles may unpack to this multiple of the library's size, beyond `_LARGEST_BUNDLES`."""

# A library with 200 MB of device code for ten architectures has some thousands of each.
MOST = {
    "marks of device code": 1 << 16,
    "CUDA images": 1 << 17,
    "sections of cubins": 1 << 20,
    "targets of offload bundles": 1 << 19,
    "functions": 1 << 16,
    "records about functions": 1 << 21,
    "bytes of names of functions": 64 << 20,
}


class DeviceCodeError(BuilderError):
    """Device code that cannot be read, so its architectures are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Image:
    """One image of device code."""

    kind: str
    """`sass`, `ptx`, `lto` or `gcn`."""
    arch: str
    """A capability (`9.0a`) or a target (`gfx90a`, with its features)."""
    version: str | None = field(default=None, compare=False)
    """For PTX, the version of the language, such as `9.0`."""

    def __str__(self) -> str:
        return {"sass": "machine code for {}", "ptx": "PTX for {}", "lto": "LTO code for {}", "gcn": "code for {}"}[
            self.kind
        ].format(self.arch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An image, as a library stores it."""

    image: Image
    size: int
    """The bytes that it takes in the library."""
    compressed: bool


Group = frozenset[Image]
"""The images of one source, or of sources linked together: a loader chooses one image of each group."""
Contents = Mapping[Image, Callable[[], bytes]]
"""The images of a group, each with a function that returns its unpacked content."""
Ranges = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class UnpackingBudget:
    """The bytes of a library that may still be read: a damaged library's parts can point at each other, without end."""

    name: str
    unpacked: int
    """Bytes that its compressed bundles may still claim to unpack to."""
    left: dict[str, int] = field(default_factory=MOST.copy)

    @classmethod
    def of(cls, name: str, data: Data) -> "UnpackingBudget":
        """Return the budget for a library of this size."""
        return cls(name, max(_LARGEST_BUNDLES, _MAX_RATIO * len(data)))

    def spend(self, what: str, count: int = 1) -> None:
        """Count one of these, or more.

        Raises:
            DeviceCodeError: there are too many of that kind.
        """
        self.left[what] -= count
        if self.left[what] < 0:
            raise DeviceCodeError(
                f"'{self.name}' has more {what} than are read", help="split the kernel, or compile it for fewer targets"
            )

    def unpack(self, size: int, what: str = "compressed offload bundles") -> None:
        """Count what a compressed bundle unpacks to, wherever it is unpacked, or another content that is taken.

        Raises:
            DeviceCodeError: all bundles together are too large for a library of that size.
        """
        self.unpacked -= size
        if self.unpacked < 0:
            raise DeviceCodeError(
                f"'{self.name}' has {what} that unpack to more than {_MAX_RATIO} times its size",
                help="compile with --no-offload-compress",
            )

    def find(self, data: Data, magic: bytes) -> Iterator[int]:
        """Yield each offset of a magic number.

        Raises:
            DeviceCodeError: there are too many.
        """
        at = data.find(magic, 0)  # a map searches from its read position by default
        while at >= 0:
            self.spend("marks of device code")
            yield at
            at = data.find(magic, at + len(magic))

    def damaged(self, what: str, at: int) -> DeviceCodeError:
        """Return the error for device code that cannot be read at this byte of the library."""
        return DeviceCodeError(f"'{self.name}' has a damaged {what} at byte {at}", help="build it again")
