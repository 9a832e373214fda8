"""Find the device code in a shared object: CUDA fat binaries and HIP offload bundles."""

from collections.abc import Iterator

from builder.binary import fatbin, offload_bundle
from builder.binary.device_image import Group, Image, Ranges, Stored, UnpackingBudget
from builder.binary.elf_file import Data
from builder.binary.functions import Function


def groups(name: str, data: Data, *, without: Ranges = ()) -> frozenset[Group]:
    """Return the groups of device code in the file `name`, except in the ranges (offset, size) of `without`.

    The whole file is searched, so a renamed section or missing section headers hide nothing. Equal groups count once.

    Raises:
        DeviceCodeError: a fat binary or a bundle is damaged, or has an unknown compression.
    """
    budget = UnpackingBudget.of(name, data)
    found = {*fatbin.groups(data, budget, without=without), *offload_bundle.groups(data, budget)}
    return frozenset(found - {frozenset()})


def read(name: str, data: Data, *, without: Ranges = ()) -> frozenset[Image]:
    """Return all device code in the file `name`, except in the ranges (offset, size) of `without`.

    Raises:
        DeviceCodeError: a fat binary or a bundle is damaged, or has an unknown compression.
    """
    return frozenset().union(*groups(name, data, without=without))


def sizes(name: str, data: Data, *, without: Ranges = ()) -> Iterator[Stored]:
    """Yield each piece of device code that `read` returns, with its size in the file.

    Raises:
        DeviceCodeError: a fat binary or a bundle is damaged, or has an unknown compression.
    """
    budget = UnpackingBudget.of(name, data)
    yield from fatbin.sizes(data, budget, without=without)
    yield from offload_bundle.sizes(data, budget)


def functions(name: str, data: Data, *, without: Ranges = ()) -> Iterator[tuple[Image, Function]]:
    """Yield each function of the machine code in the file `name`, once for each piece of code that has it.

    Raises:
        DeviceCodeError: a fat binary, a bundle or what is in it is damaged, or cannot be read here.
        ToolError: this Python does not unpack Zstandard.
    """
    budget = UnpackingBudget.of(name, data)
    yield from fatbin.functions(data, budget, without=without)
    yield from offload_bundle.functions(data, budget)


def images_of(archs: tuple[str, ...]) -> frozenset[Image]:
    """Return the device code that a list such as `9.0a 12.0+PTX` or `gfx90a` promises."""
    images: set[Image] = set()
    for arch in archs:
        if arch.startswith("gfx"):
            images.add(Image(kind="gcn", arch=arch))
            continue
        images.add(Image(kind="sass", arch=arch.removesuffix("+PTX")))
        if arch.endswith("+PTX"):
            images.add(Image(kind="ptx", arch=arch.removesuffix("+PTX")))
    return frozenset(images)
