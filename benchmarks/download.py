"""What a user downloads for a release of a large wheel: as it is, and compressed in other ways.

usage: python benchmarks/download.py WHEEL...

pip takes wheels by deflate alone; `zstd` packs a tar of the same files, which says what another format would save.
"""

import io
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

from builder.audit.library_members import named_as_library
from builder.wheel.archive import Wheel

_ZSTD = (3, 9)


def main() -> None:
    """Print a table for each wheel."""
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        path = Path(name)
        files = {member: found.read() for member, found in Wheel.read(path).members.items()}
        unpacked = sum(map(len, files.values()))
        libraries = sum(len(content) for member, content in files.items() if named_as_library(member))
        print(f"{path.name}: {path.stat().st_size:,} bytes; {unpacked:,} unpacked, {libraries:,} of them libraries\n")
        print("| packed by | bytes | of the wheel | seconds |\n|---|---|---|---|")
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for member, content in files.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        packed = archive.getvalue()
        for level in (6, 9):
            began = time.perf_counter()
            found = sum(len(zlib.compress(content, level)) for content in files.values())
            _line(path, f"deflate {level}", found, began)
        for level in _ZSTD:
            began = time.perf_counter()
            command = ["zstd", f"-{level}", "--long=27", "--stdout", "--quiet", "--single-thread"]
            done = subprocess.run(command, input=packed, capture_output=True, check=True)
            _line(path, f"tar and zstd {level}", len(done.stdout), began)
        print()


def _line(path: Path, way: str, size: int, began: float) -> None:
    share, took = size / path.stat().st_size, time.perf_counter() - began
    print(f"| {way} | {size:,} | {share:.1%} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
