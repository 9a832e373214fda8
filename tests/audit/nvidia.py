"""NVIDIA's own tools, from the toolkit that is installed or from their wheels."""

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.given.processes import output


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
