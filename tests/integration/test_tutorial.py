"""Every block of the tutorial that is marked `bash` runs, in order, as a reader would run it."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.network, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def environment(folder):
    """Make an environment that has what the one of these tests has, and `builder` on PATH."""
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    import torch  # noqa: PLC0415  only this test needs it

    (site / "tests.pth").write_text(f"{ROOT}\n{Path(torch.__file__).parents[1]}\n")
    command = folder / "bin" / "builder"
    command.write_text(f"#!{folder / 'bin' / 'python'}\nfrom builder.cli import main\nmain()\n")
    command.chmod(0o755)
    return folder / "bin"


def test_the_tutorial_runs(tmp_path):
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))
    assert len(blocks) > 7
    path = f"{environment(tmp_path / 'venv')}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    work = tmp_path / "work"
    work.mkdir()
    script = "set -euo pipefail\n" + "\n".join(blocks)
    done = subprocess.run(["bash", "-c", script], cwd=work, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "tensor([0.0000, 0.5000, 1.0000, 1.5000])" in done.stdout
    assert list((work / "www" / "files").glob("my_kernel-*.whl"))
    assert list((work / "my-kernel" / "build").glob("torch213-cxx11-cpu-*"))
