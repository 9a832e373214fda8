"""Classic CUDA cells of the newest torches, each with its own toolkit from pinned wheels."""

import json
import sys
import zipfile

import pytest

from tests.given import kernels

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.cuda,
    pytest.mark.network,
    pytest.mark.slow,
    kernels.linux,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="torch 2.15 is not for Python 3.10"),
]
CELLS = [("2.14", "cu130"), ("2.15", "cu132")]


@pytest.mark.parametrize(("torch", "compute"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_a_classic_cuda_cell_of_a_new_torch_builds_and_registers(build, tmp_path, torch, compute):
    short = torch.replace(".", "")
    variant = f"torch{short}-cxx11-{compute}-x86_64-linux"
    built, _ = build(kernels.KERNELS / "classic", "--variant", variant)
    assert list(built["report"]["ops"].values()) == [["CUDA"]]
    (wheel,) = (tmp_path / "dist").glob(f"classic-1.0.0+torch{short}.cxx11.{compute}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert json.loads(archive.read("classic/metadata.json"))["backend"] == {"type": "cuda", "archs": ["8.0"]}
        metadata = archive.read(f"classic-1.0.0+torch{short}.cxx11.{compute}.dist-info/METADATA").decode()
    assert f"Requires-Dist: torch=={torch}.*\n" in metadata
