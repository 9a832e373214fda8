"""A piece of device code, and how much of a library may be read to find all of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from builder.binary.elf_file import Data
from builder.errors import BuilderError

_LARGEST_BUNDLES = 256 << 20
_MAX_RATIO = 32
"""The multiple of a library's own size that all its compressed bundles may unpack to, beyond `_LARGEST_BUNDLES`."""

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
    """Device code that cannot be read; nothing can be said about its architectures."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Image:
    """One piece of device code."""

    kind: str
    """`sass`, `ptx`, `lto` or `gcn`."""
    arch: str
    """As a capability (`9.0a`) or a target (`gfx90a`, with its features)."""
    version: str | None = field(default=None, compare=False)
    """Version of the language, of PTX: such as `9.0`."""

    def __str__(self) -> str:
        return {"sass": "machine code for {}", "ptx": "PTX for {}", "lto": "LTO code for {}", "gcn": "code for {}"}[
            self.kind
        ].format(self.arch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A piece of device code, as a library has it."""

    image: Image
    size: int
    """The bytes that it takes in the library."""
    compressed: bool


Group = frozenset[Image]
"""The device code of one source, or of what was linked as one: a loader chooses one image of each group."""
Contents = Mapping[Image, Callable[[], bytes]]
"""The same, each with what returns its content, unpacked."""
Ranges = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Budget:
    """The bytes of one library that may still be read: its parts can point at each other, and would be read forever."""

    name: str
    unpacked: int
    """Bytes that its compressed bundles may still claim to unpack to."""
    left: dict[str, int] = field(default_factory=MOST.copy)

    @classmethod
    def of(cls, name: str, data: Data) -> "Budget":
        """Return the budget of a library of that size."""
        return cls(name, max(_LARGEST_BUNDLES, _MAX_RATIO * len(data)))

    def spend(self, what: str, count: int = 1) -> None:
        """Count one of these, or more.

        Raises:
            DeviceCodeError: there were too many.
        """
        self.left[what] -= count
        if self.left[what] < 0:
            raise DeviceCodeError(
                f"'{self.name}' has more {what} than are read", help="split the kernel, or compile it for fewer targets"
            )

    def unpack(self, size: int, what: str = "compressed offload bundles") -> None:
        """Count what a compressed bundle unpacks to, wherever it is unpacked, or another content that is taken.

        Raises:
            DeviceCodeError: it is more than device code of that size has.
        """
        self.unpacked -= size
        if self.unpacked < 0:
            raise DeviceCodeError(
                f"'{self.name}' has {what} that unpack to more than {_MAX_RATIO} times its size",
                help="compile with --no-offload-compress",
            )

    def find(self, data: Data, magic: bytes) -> Iterator[int]:
        """Yield where a mark of device code is.

        Raises:
            DeviceCodeError: it is there too often.
        """
        at = data.find(magic, 0)  # a map searches from where it was read to
        while at >= 0:
            self.spend("marks of device code")
            yield at
            at = data.find(magic, at + len(magic))

    def damaged(self, what: str, at: int) -> DeviceCodeError:
        """Return the error for what cannot be read at a byte of the library."""
        return DeviceCodeError(f"'{self.name}' has a damaged {what} at byte {at}", help="build it again")
