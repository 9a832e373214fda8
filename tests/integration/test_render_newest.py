"""Classic CUDA cells of the newest torches, each with its own toolkit from pinned wheels."""

import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration import rendered

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.cuda,
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="torch 2.15 is not for Python 3.10"),
]
CELLS = [("2.14", "cu130"), ("2.15", "cu132")]
COMPONENT = '[kernel.relu-cuda]\nbackend = "cuda"\n'


@pytest.mark.parametrize(("torch", "compute"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_a_classic_cuda_cell_of_a_new_torch_builds_and_registers(tmp_path, torch, compute):
    short = torch.replace(".", "")
    variant = f"torch{short}-cxx11-{compute}-x86_64-linux"
    kernel = Path(shutil.copytree(rendered.EXAMPLES / "relu", tmp_path / "relu"))
    config = kernel / "build.toml"
    text = config.read_text()
    assert COMPONENT in text
    # One capability: each takes nvcc minutes with the headers of a classic kernel.
    config.write_text(text.replace(COMPONENT, COMPONENT + 'cuda-capabilities = ["9.0"]\n'))
    command = [sys.executable, "-m", "builder", "build", kernel, "--variant", variant, "--json"]
    env = rendered.environment(PYTHONPATH=rendered.ROOT, BUILDER_STORE=tmp_path / "store")
    done = rendered.run([*command, "--quiet", "--output", tmp_path / "dist"], env=env)
    assert done.returncode == 0, done.output
    (built,) = json.loads(done.output[done.output.index("[\n") :])
    assert list(built["report"]["ops"].values()) == [["CUDA"], ["CUDA"]]
    (wheel,) = (tmp_path / "dist").glob(f"relu-1.0.0+torch{short}.cxx11.{compute}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert json.loads(archive.read("relu/metadata.json"))["backend"] == {"type": "cuda", "archs": ["9.0"]}
        metadata = archive.read(f"relu-1.0.0+torch{short}.cxx11.{compute}.dist-info/METADATA").decode()
    assert f"Requires-Dist: torch=={torch}.*\n" in metadata
