"""Whether a GPU runs a piece of device code, and the part of its waves that a function keeps running: its occupancy."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from builder import codec, toml
from builder.binary.device_image import Image
from builder.binary.functions import Function
from builder.config import Backend
from builder.config.gpus import Gpu
from builder.matrix import architectures
from builder.resources import DATA

_LARGEST_BLOCK = 1024
_NARROW = 32
"""Threads of the waves that gfx10 and later have by themselves; one of 64 takes two registers of each lane."""
_GFX10 = 1024
"""Registers of a lane that only such a GPU has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the part of a GPU that runs a block."""

    archs: tuple[str, ...]
    parts: int
    waves: int
    registers: int
    register_unit: int
    blocks: int
    shared: int
    shared_unit: int
    reserved: int = 0
    """Bytes of shared memory that a block takes beside its own."""
    reserved_is_counted: bool = False
    """Whether the compiler counts them as the block's own."""


@cache
def limits() -> Mapping[str, Limits]:
    """Return the limits by architecture."""
    rows = toml.loads((DATA / "occupancy.toml").read_text(encoding="utf-8"))["limits"]
    return {arch: found for row in rows for found in (codec.decode(Limits, row),) for arch in found.archs}


def runs(gpu: Gpu, image: Image) -> bool:
    """Whether device code is for a GPU, or for one whose code it runs."""
    if (image.kind == "gcn") is not (gpu.backend is Backend.ROCM):
        return False  # a wheel may have what is not of its backend
    match image.kind:
        case "gcn":
            return image.arch.partition(":")[0] == gpu.arch
        case "sass":
            return architectures.runs(image.arch, gpu.arch)
        case "ptx":
            return architectures.runs(f"{image.arch}+PTX", gpu.arch)
        case _:
            return False  # code for the linker of a device


def percent(function: Function, arch: str) -> int | None:
    """Return the occupancy of a function on a GPU, in percent; None for a GPU whose limits are not known.

    A function with a limit to the threads of a block has blocks of so many, another one those that are best for it.
    What a launch adds to its shared memory is not known, and not counted.
    """
    found = limits().get(arch)
    if found is None:
        return None
    wave = function.wave
    most = min(function.threads or _LARGEST_BLOCK, _LARGEST_BLOCK)
    sizes = (most,) if function.threads else range(wave, most + 1, wave)
    waves = max(blocks(found, function, threads) * -(-threads // wave) for threads in sizes)
    return 100 * waves // (found.parts * found.waves)


def blocks(found: Limits, function: Function, threads: int) -> int:
    """Return how many blocks of so many threads run at once."""
    waves = -(-threads // function.wave)
    wide = function.wave > _NARROW and found.registers >= _GFX10
    lanes = found.registers // 2 if wide else found.registers
    unit = found.register_unit // 2 if wide else found.register_unit
    taken = _rounded(max(function.registers, 1), unit)
    by_registers = found.parts * min(lanes // taken, found.waves) // waves
    own = 0 if found.reserved_is_counted and function.shared else found.reserved
    shared = _rounded(function.shared + own, found.shared_unit)
    return min(found.blocks, by_registers, found.shared // shared if shared else found.blocks)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
