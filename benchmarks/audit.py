"""Audit of a wheel with 200 MB of device code, with the peers' audits of the same file: wall, CPU and peak memory.

usage: python benchmarks/audit.py [MEGABYTES] [RUNS]
"""

import hashlib
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import paired

from builder.wheel.archive import Bytes, pack

SOURCE = """
extern "C" {
void *PyModule_Create2(void *, int);
__attribute__((visibility("default"))) void *PyInit_demo(void) { return PyModule_Create2(nullptr, 3); }
}
"""
IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
ARCHS = (75, 80, 86, 89, 90, 100, 120)


def noise(size: int) -> bytes:
    """Return bytes that do not compress, as compressed device code does not, and are the same every time."""
    return hashlib.shake_256(b"audit").digest(1 << 20) * (size >> 20)


def library(directory: Path, *, megabytes: int) -> bytes:
    """Return a real shared library with that much device code in it."""
    source, output, blob = directory / "demo.cpp", directory / "demo.so", directory / "blob"
    source.write_text(SOURCE, encoding="utf-8")
    subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(output)], check=True)
    content = noise((megabytes << 20) // len(ARCHS))
    images = b"".join(
        IMAGE.pack(2, 0x101, 64, len(content), 0, 0, 8, 1, arch, 0, 0, 0, 0, 0) + content for arch in ARCHS
    )
    blob.write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(images)) + images)
    flags = ["--add-section", f".nv_fatbin={blob}", "--set-section-flags", ".nv_fatbin=readonly"]
    subprocess.run(["objcopy", *flags, str(output)], check=True)
    return output.read_bytes()


def wheel(directory: Path, *, megabytes: int) -> Path:
    """Write the wheel."""
    dist_info = "demo-1.0.0+torch213.cxx11.cu130.dist-info"
    tag = "cp39-abi3-manylinux_2_28_x86_64"
    members = {
        "demo/__init__.py": Bytes(b""),
        "demo/demo.abi3.so": Bytes(library(directory, megabytes=megabytes)),
        f"{dist_info}/METADATA": Bytes(b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0+torch213.cxx11.cu130\n"),
        f"{dist_info}/WHEEL": Bytes(f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()),
    }
    path = directory / f"demo-1.0.0+torch213.cxx11.cu130-{tag}.whl"
    path.write_bytes(pack(members, dist_info=dist_info))
    return path


def measure(command: list[str]) -> tuple[float, float, float]:
    """Return wall seconds, CPU seconds and peak MiB of one run; findings are no failure here."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    megabytes = int(sys.argv[1]) if sys.argv[1:] else 200
    runs = int(sys.argv[2]) if sys.argv[2:] else 5
    with tempfile.TemporaryDirectory() as temporary:
        # In a process of its own: the peak of a child counts from that of its parent.
        with ProcessPoolExecutor(1) as pool:
            path = pool.submit(wheel, Path(temporary), megabytes=megabytes).result()
        commands = {
            "builder audit": [sys.executable, "-m", "builder", "audit", str(path)],
            "auditwheel show": [sys.executable, "-m", "auditwheel", "show", str(path)],
            "abi3audit": [sys.executable, "-m", "abi3audit", str(path)],
        }
        print(f"{paired.machine()}; wheel of {path.stat().st_size / 2**20:.0f} MiB")
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                found[name].append(measure(command))
    print(f"{'':20} {'wall s':>8} {'cpu s':>8} {'peak MiB':>10}")
    for name, rows in found.items():
        wall, cpu, peak = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:20} {wall:8.2f} {cpu:8.2f} {peak:10.0f}")


if __name__ == "__main__":
    main()
