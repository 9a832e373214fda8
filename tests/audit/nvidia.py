"""NVIDIA's own tools, from the toolkit that is installed or from their wheels."""

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from builder.binary.device_image import Image
from tests.given.processes import output

# Empty kernels suffice, since which image is taken is asked, each under a name that says which image has it.
PTX = """
.version 8.8
.target sm_{number}
.address_size 64
.visible .entry of_{kind}_{number}() {{ ret; }}
"""
ARCHS = ("7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "9.0a", "10.0f", "10.3a", "12.0")


def nvcc():
    """Return the real nvcc, not a script on PATH that only calls it."""
    for root in (Path("/usr/local/cuda-13.0"), Path("/usr/local/cuda"), Path("/opt/cuda")):
        if (root / "bin" / "nvcc").exists():
            return root / "bin" / "nvcc"
    found = shutil.which("nvcc")
    if found is None:
        pytest.fail("these tests need nvcc; leave them out with -m 'not cuda'")
    return Path(found)


def tool(name, package, place):
    """Return a tool beside nvcc, or else that of the wheel of this package, unpacked in a folder."""
    beside = nvcc().with_name(name)
    return beside if beside.exists() else fetch(package, place) / name


def fetch(package, place):
    """Return the folder of the programs in a wheel of NVIDIA, unpacked in a folder."""
    output(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place / "wheels", package)
    with zipfile.ZipFile(next((place / "wheels").glob("*.whl"))) as wheel:
        wheel.extractall(place)
    folder = next(place.glob("nvidia/*/bin"))
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


def readers(tmp_path_factory):
    """Return NVIDIA's readers of device code by their names."""
    places = {name: tmp_path_factory.mktemp(name) for name in ("cuobjdump", "nvdisasm")}
    return {name: tool(name, f"nvidia-cuda-{name}", place) for name, place in places.items()}


def number(arch):
    return arch.replace(".", "")


def images(place):
    """Return the file of each piece of device code, by its kind and architecture, made in a folder."""
    found = {}
    for arch in ARCHS:
        for kind in ("elf", "ptx"):
            found[kind, arch] = place / f"{kind}{number(arch)}.ptx"
            found[kind, arch].write_text(PTX.format(number=number(arch), kind=kind))
        cubin = place / f"{number(arch)}.cubin"
        output(nvcc().with_name("ptxas"), "-c", f"-arch=sm_{number(arch)}", "-o", cubin, found["elf", arch])
        found["elf", arch] = cubin
    return found


def without_family(images):
    """Return images as cuobjdump and nvdisasm call them: 10.0f is sm_100."""
    return {Image(kind=image.kind, arch=image.arch.removesuffix("f")) for image in images}
