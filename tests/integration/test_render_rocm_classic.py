"""ROCm: a classic kernel, which includes headers of torch for ROCm, compiles for two architectures of each family.

No torch for ROCm can be had here. Its headers of HIP are made of those of CUDA, which every torch has, by torch's own
hipify, as AMD's build of torch makes them. Its libraries are not needed to link, but to load, which is not done here.
"""

import itertools
import json
import re

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
_ARCH = re.compile(rb"amdgcn-amd-amdhsa--(gfx[0-9a-f]+)")


def test_the_example_is_compiled_for_two_architectures_of_each_family(tmp_path):
    # tests/integration/test_render_rocm_every_gfx.py has them all; torch's headers ask for no more than the family.
    table = architectures.facts()["rocm"]
    known = sorted({*table["archs"], *table["targets"]} & rocm.known())
    families = [[*archs] for _, archs in itertools.groupby(known, key=lambda arch: arch[:-2])]
    wanted = sorted({arch for family in families for arch in (family[0], family[-1])})
    assert len(wanted) > 2
    thrust = rocm.thrust(tmp_path / "debian")
    if thrust is None:
        pytest.skip("apt has no rocThrust's headers; BUILDER_TEST_ROCTHRUST names a folder with thrust and rocprim")
    torch = rocm.rocm_torch(tmp_path / "torch", rendered.torch_folder())
    rocm.add_headers_of_hip(torch)
    rendered.write_project(rendered.EXAMPLES / "relu", "rocm", tmp_path / "project")
    env = rendered.environment(ROCM_PATH=rocm.rocm_root(tmp_path, thrust))
    options = (f"-DKERNEL_TORCH_DIR={torch}", f"-DKERNEL_ROCM_ARCHS={';'.join(wanted)}")
    done = rendered.configure(tmp_path / "project", tmp_path / "build", *options, env=env)
    assert done.returncode == 0, done.output
    rendered.compile_and_install(tmp_path / "build", tmp_path / "installed", env=env)
    (library,) = (tmp_path / "installed").glob("relu/*.so")
    content = library.read_bytes()
    assert {name.decode() for name in _ARCH.findall(content)} == set(wanted)
    assert str(tmp_path).encode() not in content
    backend = json.loads((tmp_path / "installed/relu/metadata.json").read_text())["backend"]
    assert sorted(backend["archs"]) == wanted
