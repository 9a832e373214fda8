"""What the driver of a GPU takes of a fat binary, against what the audit says; skipped where there is no GPU."""

import os
import subprocess
import sys
from itertools import combinations

import pytest

from builder.audit.gpus import choose, named
from builder.binary import device_code
from builder.errors import BuilderError
from builder.toolchain import this_machine
from tests.audit import nvidia
from tests.audit.nvidia import number
from tests.audit.test_choice import expected
from tests.given.processes import output

pytestmark = [pytest.mark.gpu, pytest.mark.cuda]

ASK = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert driver.cuCtxSetCurrent(context) == 0
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        content = file.read()
    found = driver.cuModuleLoadData(ctypes.byref(module), content)
    names = sys.argv[1].split(",") if found == 0 else []
    taken = [name for name in names if driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0]
    print(",".join(taken))
"""


@pytest.fixture(scope="module")
def gpu():
    """The GPU of this machine that a program would use."""
    found = this_machine.cuda_gpus(os.environ)
    if not found:
        pytest.skip("no NVIDIA GPU: the driver library libcuda.so.1 finds none here")
    try:
        return named(found[0])
    except BuilderError as error:
        pytest.skip(f"the GPU here is not in gpus.toml: {error.message}")


@pytest.fixture(scope="module")
def images(gpu, tmp_path_factory):  # noqa: ARG001  without a GPU nothing is compiled
    return nvidia.images(tmp_path_factory.mktemp("images"))


def test_the_driver_takes_what_the_audit_says_of_each_two_images(gpu, images, tmp_path):
    chosen = [*((image,) for image in images), *combinations(images, 2)]
    files = []
    for index, subset in enumerate(chosen):
        files.append(tmp_path / f"{index}.fatbin")
        given = (f"--image3=kind={kind},sm={number(arch)},file={images[kind, arch]}" for kind, arch in subset)
        output(nvidia.nvcc().with_name("fatbinary"), f"--create={files[-1]}", "-64", *given)
    names = ",".join(f"of_{kind}_{number(arch)}" for kind, arch in images)
    done = subprocess.run(
        [sys.executable, "-c", ASK, names, *map(str, files)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    taken = [set(filter(None, line.split(","))) for line in done.stdout.splitlines()]
    ours = [expected(choose(gpu, device_code.groups(file.name, file.read_bytes()))) for file in files]
    wrong = [each for each in zip(chosen, ours, taken, strict=True) if each[1] != each[2]]
    assert not wrong, "\n".join(map(str, wrong))
