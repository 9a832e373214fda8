"""ROCm: a kernel compiles for every architecture of the table that this HIP knows, and its library has code for each.

It is one of the stable ABI: a CPU torch has no `c10/hip`, which classic kernels include.
"""

import re
from pathlib import Path

import pytest

from builder.matrix import architectures
from tests.integration import rendered, rocm

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.rocm,
    pytest.mark.slow,
    pytest.mark.network,
    rendered.needs_torch,
    pytest.mark.skipif(bool(rocm.why_not()), reason=rocm.why_not() or "-"),
]
KERNEL = Path(__file__).parent / "kernels/scale-hip"
_ARCH = re.compile(rb"amdgcn-amd-amdhsa--(gfx[0-9a-f]+)")


def test_code_for_every_architecture_is_compiled_and_linked(tmp_path):
    table = architectures.facts()["rocm"]
    wanted = sorted({*table["archs"], *table["targets"]} & rocm.known())
    thrust = rocm.thrust(tmp_path / "debian")
    if thrust is None:
        pytest.skip("apt has no rocThrust's headers; BUILDER_TEST_ROCTHRUST names a folder with thrust and rocprim")
    rendered.write_project(KERNEL, "rocm", tmp_path / "project")
    env = rendered.environment(ROCM_PATH=rocm.rocm_root(tmp_path, thrust))
    torch = rocm.rocm_torch(tmp_path / "torch", rendered.torch_folder())
    options = (f"-DKERNEL_TORCH_DIR={torch}", f"-DKERNEL_ROCM_ARCHS={';'.join(wanted)}")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *options, env=env)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed", env=env)
    (library,) = (tmp_path / "installed").glob("scale_hip/*.so")
    found = {name.decode() for name in _ARCH.findall(library.read_bytes())}
    assert found == set(wanted)
    assert len(found) > 15  # that of Debian 12 knows so many


def test_what_the_table_has_and_this_hip_does_not_know_is_older_or_newer_than_it():
    """HIP 6.4 and newer know all of the table but what LLVM has dropped since."""
    if rocm.hip_release() < (6, 4):
        pytest.skip("this HIP is older than the table")
    assert set(architectures.facts()["rocm"]["targets"]) - rocm.known() <= {"gfx940", "gfx941"}
