"""Whether a GPU runs a piece of device code, and the part of its waves that a function keeps running: its occupancy."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

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
class GpuLimits:
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
def limits() -> Mapping[str, GpuLimits]:
    """Return the limits by architecture."""
    rows = toml.loads((DATA / "occupancy.toml").read_text(encoding="utf-8"))["limits"]
    return {arch: found for row in rows for found in (codec.decode(GpuLimits, row),) for arch in found.archs}


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
    most = min(function.threads or _LARGEST_BLOCK, _LARGEST_BLOCK)
    return _percent(found, function.registers, function.shared, most, function.wave, function.threads is not None)


@lru_cache(maxsize=4096)  # many functions take the same
def _percent(found: GpuLimits, registers: int, shared: int, most: int, wave: int, exact: bool) -> int:  # noqa: FBT001, PLR0917
    waves, room = _room(found, registers=registers, shared=shared, wave=wave)
    largest = -(-most // wave)
    running = max(min(room, waves // each) * each for each in ((largest,) if exact else range(1, largest + 1)))
    return 100 * running // (found.parts * found.waves)


def blocks(found: GpuLimits, *, registers: int, shared: int, threads: int, wave: int) -> int:
    """Return how many blocks of so many threads run at once."""
    waves, room = _room(found, registers=registers, shared=shared, wave=wave)
    return min(room, waves // -(-threads // wave))


def _room(found: GpuLimits, *, registers: int, shared: int, wave: int) -> tuple[int, int]:
    """Return how many waves run at once by their registers, and how many blocks by their shared memory."""
    wide = wave > _NARROW and found.registers >= _GFX10
    lanes = found.registers // 2 if wide else found.registers
    unit = found.register_unit // 2 if wide else found.register_unit
    waves = found.parts * min(lanes // _rounded(max(registers, 1), unit), found.waves)
    own = 0 if found.reserved_is_counted and shared else found.reserved
    taken = _rounded(shared + own, found.shared_unit)
    return waves, min(found.blocks, found.shared // taken) if taken else found.blocks


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
