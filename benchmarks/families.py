"""What a user downloads of a wheel: whole, for one family of GPUs, and with device code in wheels of its own.

usage: python benchmarks/families.py WHEEL...

The second are the wheels of `builder split`. The third is what a host wheel without device code and a wheel with the
device code of a family would have, which nothing reads: their sizes alone. Bytes are those of wheels, deflated.
"""

import sys
import zlib
from pathlib import Path

from builder.audit.library_members import named_as_library
from builder.binary import fatbin
from builder.publish import families
from builder.publish.families import Family
from builder.wheel import kernel_wheel
from builder.wheel.kernel_wheel import KernelWheel

_LEVEL = 6


def main() -> None:
    """Print a line for each family of each wheel."""
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        wheel = kernel_wheel.read(Path(name))
        print(f"{wheel.wheel.path.name}: {wheel.size:,} bytes\n")
        print("| family | its wheel | of the whole | host wheel and device wheel | of the whole |")
        print("|---|---|---|---|---|")
        for family, made in families.split(wheel):
            own, apart = len(made.content), sum(host_and_device(wheel, family))
            print(f"| {family} | {own:,} | {own / wheel.size:.0%} | {apart:,} | {apart / wheel.size:.0%} |")
        print()


def host_and_device(wheel: KernelWheel, family: Family) -> tuple[int, int]:
    """Return the bytes of a wheel without device code, and those of the device code of a family, both deflated."""
    host, device = wheel.size, b""
    for name, member in wheel.wheel.members.items():
        if named_as_library(name):
            data = member.read()
            bare = bytearray(data)
            for image, stored in fatbin.entries(name, data):
                at = data.index(stored)
                bare[at : at + len(stored)] = bytes(len(stored))
                device += stored if int(image.arch.partition(".")[0]) == family.major else b""
            host -= len(zlib.compress(data, _LEVEL)) - len(zlib.compress(bytes(bare), _LEVEL))
    return host, len(zlib.compress(device, _LEVEL))


if __name__ == "__main__":
    main()
