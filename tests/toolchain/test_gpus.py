"""Which GPUs a machine has: asked of the driver of NVIDIA, and of the kernel of the system for AMD."""

import subprocess

import pytest

from builder.config import Backend
from builder.errors import NotHereError
from builder.matrix import architectures
from builder.toolchain import this_machine
from tests import needs
from tests.given.files import program

ABSENT = "libcuda-that-is-not-there.so.1"
DRIVER = """
int cuInit(unsigned flags) { return RESULT; }
int cuDeviceGetCount(int *count) { *count = 3; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? (device == 2 ? 12 : 8) : (device == 2 ? 0 : 9);
  return 0;
}
"""


def told(folder, script):
    """Return the GPUs where no driver is found, and its tool is a script."""
    program(folder / "nvidia-smi", f"#!/bin/sh\n{script}\n")
    return this_machine.cuda_gpus({"PATH": f"{folder}:/usr/bin:/bin"}, driver=ABSENT)


@pytest.fixture
def driver(tmp_path, request):
    compiler = needs.program("gcc")

    library = tmp_path / "libcuda.so.1"
    (tmp_path / "driver.c").write_text(DRIVER)
    command = [compiler, "-shared", "-fPIC", f"-DRESULT={request.param}", "-o", library, "driver.c"]
    subprocess.run(command, check=True, cwd=tmp_path)
    return str(library)


@pytest.mark.cmake
@pytest.mark.parametrize("driver", [0], indirect=True)
def test_the_driver_names_each_capability_once(driver):
    assert this_machine.cuda_gpus({}, driver=driver) == ("8.9", "12.0")


@pytest.mark.cmake
@pytest.mark.parametrize("driver", [100], indirect=True)
def test_a_driver_without_a_gpu_is_none(driver, tmp_path):
    assert this_machine.cuda_gpus({"PATH": str(tmp_path)}, driver=driver) == ()


def test_where_the_loader_knows_no_driver_its_tool_is_asked(tmp_path):
    assert told(tmp_path, 'echo "9.0"; echo "9.0"; echo "8.6"') == ("9.0", "8.6")


@pytest.mark.parametrize("script", ["exit 9", "echo 'No devices were found'", "echo '[N/A]'"])
def test_a_tool_that_finds_nothing_gives_nothing(tmp_path, script):
    assert told(tmp_path, script) == ()


def test_a_driver_that_hangs_is_as_good_as_none(tmp_path, monkeypatch):
    monkeypatch.setattr(this_machine, "_PATIENCE", 0.2)
    assert told(tmp_path, "exec sleep 60") == ()


@pytest.mark.parametrize(
    ("number", "name"),
    [("90010", "gfx90a"), ("90402", "gfx942"), ("110000", "gfx1100"), ("100300", "gfx1030"), ("120001", "gfx1201")],
)
def test_the_kernel_of_the_system_names_the_gpus_of_amd(tmp_path, number, name):
    for node, value in (("0", "0"), ("1", number), ("2", number)):
        (tmp_path / node).mkdir()
        (tmp_path / node / "properties").write_text(f"cpu_cores_count 8\ngfx_target_version {value}\nvendor_id 1\n")
    assert this_machine.rocm_gpus(tmp_path) == (name,)


def test_what_the_kernel_does_not_know_is_no_gpu(tmp_path):
    for node, text in (("0", b""), ("1", b"gfx_target_version x\n"), ("2", b"\xff\n")):
        (tmp_path / node).mkdir()
        (tmp_path / node / "properties").write_bytes(text)
    (tmp_path / "3").mkdir()
    assert this_machine.rocm_gpus(tmp_path) == ()
    assert this_machine.rocm_gpus(tmp_path / "nowhere") == ()


def test_native_is_what_the_first_backend_with_a_gpu_has(monkeypatch):
    monkeypatch.setattr(this_machine, "_DRIVER", ABSENT)
    monkeypatch.setattr(this_machine, "cuda_gpus", lambda _environ: ("9.0", "8.0"))
    monkeypatch.setattr(this_machine, "rocm_gpus", lambda: ("gfx942",))
    both = (Backend.CUDA, Backend.ROCM)
    assert this_machine.native_gpus(both, {}) == architectures.of(Backend.CUDA, ("8.0", "9.0"))
    assert this_machine.native_gpus((Backend.ROCM,), {}) == architectures.of(Backend.ROCM, ("gfx942",))
    monkeypatch.setattr(this_machine, "cuda_gpus", lambda _environ: ())
    assert this_machine.native_gpus(both, {}).archs == ("gfx942",)


def test_a_machine_without_a_gpu_is_told_to_name_one(monkeypatch):
    monkeypatch.setattr(this_machine, "cuda_gpus", lambda _environ: ())
    monkeypatch.setattr(this_machine, "rocm_gpus", lambda: ())
    with pytest.raises(NotHereError) as refused:
        this_machine.native_gpus((Backend.CUDA, Backend.ROCM), {})
    assert refused.value.message == "no GPU for CUDA or ROCm is found on this machine"
    assert "--archs 9.0" in refused.value.help
