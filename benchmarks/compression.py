"""How nvcc packs device code: bytes in a library and in a wheel, seconds to pack, and to unpack what one GPU takes.

usage: python benchmarks/compression.py generated|LIBRARY [BIN...]   BIN: folders with fatbinary; default: beside nvcc

Of a generated kernel the cubins for ten capabilities are made once, by nvcc on PATH; of a library those of its first 8
sources are taken. Each `fatbinary` packs the same ones in every mode that nvcc has, also with -Xfatbin=-compress-all
(`all`). No GPU is asked: unpacking is that of the public libraries of Zstandard and LZ4 (`pip install zstandard lz4`),
on one core, of all cubins of one capability.
"""

import contextlib
import importlib
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import paired

from builder.binary import fatbin

CAPABILITIES = ("75", "80", "86", "89", "90", "90a", "100", "103", "120", "121")
TAKEN = "9.0"
MODES = ("none", "speed", "balance", "size", "default")
FILES = 4
MOST = 8
RUNS = 3
_LEVEL = 6
"""Deflate's, of a wheel."""
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
SOURCE = """\
#include <cuda_fp16.h>

template <typename T, int N> __global__ void mixed_{number}(T *out, const T *in, int size) {{
  __shared__ T tile[32][33];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = i < size ? static_cast<float>(in[i]) : {number}.5f;
#pragma unroll
  for (int step = 0; step < 8 * N; ++step) {{
    tile[threadIdx.x % 32][(threadIdx.x + step) % 33] = static_cast<T>(value);
    __syncthreads();
    value = value * 1.5f + expf(static_cast<float>(tile[(threadIdx.x + N) % 32][step % 33])) * rsqrtf(value + 1.5f);
  }}
  if (i < size) out[i] = static_cast<T>(value);
}}
"""
Cubins = dict[str, Path]
Unpack = Callable[[bytes, int], bytes]


def main() -> None:
    """Print a line for each mode of each `fatbinary`."""
    nvcc = shutil.which("nvcc")
    if nvcc is None or len(sys.argv) == 1:
        sys.exit("nvcc is not on PATH" if nvcc is None else __doc__)
    print(paired.machine())
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        cubins = compiled(nvcc, place) if sys.argv[1] == "generated" else taken_from(Path(sys.argv[1]), place)
        size = sum(path.stat().st_size for each in cubins for path in each.values())
        print(f"{len(cubins)} sources, {len(cubins[0])} capabilities: {size} bytes of cubins\n")
        for folder in map(Path, sys.argv[2:] or [beside(nvcc, place)]):
            version = subprocess.run([folder / "fatbinary", "--version"], check=True, capture_output=True, text=True)
            print(version.stdout.splitlines()[-2])
            table(folder / "fatbinary", cubins, place)


def beside(nvcc: str, folder: Path) -> str:
    """Return the folder of the real nvcc, which says where it is."""
    (folder / "empty.cu").touch()
    said = subprocess.run([nvcc, "--dryrun", folder / "empty.cu"], check=True, capture_output=True, text=True).stderr
    return next(line.partition("=")[2] for line in said.splitlines() if line.startswith("#$ _HERE_="))


def compiled(nvcc: str, folder: Path) -> list[Cubins]:
    """Return the cubins of each source of a generated kernel."""
    found = []
    for number in range(FILES):
        source = folder / f"f{number}.cu"
        made = [f"template __global__ void mixed_{number}<{kind}, {n}>({kind} *, const {kind} *, int);"
                for kind in ("float", "__half") for n in range(1, 7)]  # fmt: skip
        source.write_text("\n".join([SOURCE.format(number=number), *made, ""]), encoding="utf-8")
        cubins = {capability: folder / f"f{number}.{capability}.cubin" for capability in CAPABILITIES}
        for capability, cubin in cubins.items():
            subprocess.run([nvcc, "-cubin", f"-arch=sm_{capability}", "-o", cubin, source], check=True)
        found.append(cubins)
    return found


def taken_from(library: Path, folder: Path) -> list[Cubins]:
    """Return the cubins of the first sources of a library: a capability that comes again begins the next one."""
    found: list[Cubins] = [{}]
    with library.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for image, stored in fatbin.entries(library.name, data):
        if image.kind != "sass":
            continue
        capability = image.arch.replace(".", "")
        if capability in found[-1]:
            if len(found) == MOST:
                break
            found.append({})
        cubin = folder / f"f{len(found)}.{capability}.cubin"
        cubin.write_bytes(stored if stored.startswith(b"\x7fELF") else way(stored)[1](stored, 0))
        found[-1][capability] = cubin
    return found


def table(fatbinary: Path, cubins: list[Cubins], folder: Path) -> None:
    """Print what each mode costs."""
    print("| mode | in the library | of none | in the wheel | of none | packing, cpu s | unpacking for 9.0, ms |")
    print("|---|---|---|---|---|---|---|")
    plain: tuple[int, int] | None = None
    for more in ((), ("--compress-all",)):
        for mode in MODES:
            seconds, packed = pack(fatbinary, cubins, folder, (f"--compress-mode={mode}", *more))
            deflated = sum(len(zlib.compress(content, _LEVEL)) for content in packed)
            size = sum(map(len, packed))
            plain = plain or (size, deflated)
            shares = f"{size} | {size / plain[0]:.0%} | {deflated} | {deflated / plain[1]:.0%}"
            print(f"| {mode}{', all' * bool(more)} | {shares} | {seconds:.2f} | {unpacked(packed, cubins)} |")
    print()


def pack(fatbinary: Path, cubins: list[Cubins], folder: Path, options: Sequence[str]) -> tuple[float, list[bytes]]:
    """Return the least processor seconds of some runs, and the fat binary of each file."""
    least = float("inf")
    targets = [folder / f"{number}.fatbin" for number in range(len(cubins))]
    for _ in range(RUNS):
        before = os.times()
        for target, files in zip(targets, cubins, strict=True):
            images = [f"--image3=kind=elf,sm={capability},file={path}" for capability, path in files.items()]
            subprocess.run([fatbinary, f"--create={target}", "-64", *options, *images], check=True)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        least = min(least, used)
    return least, [target.read_bytes() for target in targets]


def unpacked(packed: list[bytes], cubins: list[Cubins]) -> str:
    """Return the milliseconds that unpacking the cubins of one capability takes, and how they are compressed."""
    taken = TAKEN.replace(".", "")
    pairs = []
    for content, files in zip(packed, cubins, strict=True):
        found = [data for image, data in fatbin.entries("a", content) if image.arch == TAKEN]
        if found and not found[0].startswith(b"\x7fELF"):
            size = files[taken].stat().st_size
            pairs.append((exact(found[0], size), size))
    if not pairs:
        return "not compressed"
    name, unpack = way(pairs[0][0])
    least = float("inf")
    for _ in range(RUNS):
        began = time.perf_counter()
        for stored, size in pairs:
            unpack(stored, size)
        least = min(least, time.perf_counter() - began)
    return f"{1000 * least:.2f} ({name})"


def way(stored: bytes) -> tuple[str, Unpack]:
    """Return the name of a compression, and what unpacks it."""
    if stored.startswith(_ZSTANDARD):
        zstandard = importlib.import_module("zstandard")
        return "Zstandard", lambda data, _: zstandard.ZstdDecompressor().decompressobj().decompress(data)
    block = importlib.import_module("lz4.block")
    return "LZ4", lambda data, size: block.decompress(data, uncompressed_size=size)


def exact(stored: bytes, size: int) -> bytes:
    """Return a block of LZ4 without the bytes behind it, up to seven, that are none of it."""
    name, unpack = way(stored)
    if name != "LZ4":
        return stored
    wrong: type[Exception] = importlib.import_module("lz4.block").LZ4BlockError
    for end in range(len(stored), len(stored) - 8, -1):
        with contextlib.suppress(wrong):
            if len(unpack(stored[:end], size)) == size:
                return stored[:end]
    raise ValueError("this is no block of LZ4")


if __name__ == "__main__":
    main()
