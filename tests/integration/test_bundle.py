"""The public client loads what `builder bundle` laid out, without a network, and its op gives the right result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builder.cli import run

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.slow]

RELU = Path(__file__).parents[2] / "examples" / "relu"
CALL = """
import sys
from pathlib import Path
import torch
from kernels import get_local_kernel

relu = get_local_kernel(Path(sys.argv[1]), backend="cpu")
x = torch.randn(33, 65, requires_grad=True)
y = relu.relu(x)
y.sum().backward()
assert torch.equal(y, torch.relu(x)), "wrong result"
assert torch.equal(x.grad, (x > 0).to(x.dtype)), "wrong gradient"
assert Path(relu.__file__).is_relative_to(Path(sys.argv[1]).resolve()), relu.__file__
print("called", relu.__file__)
"""


def test_the_client_loads_a_bundled_kernel_and_calls_it(tmp_path):
    dist = tmp_path / "dist"
    build = ["build", RELU, "--backend", "cpu", "--no-isolation", "--output", dist, "--store", tmp_path / "store"]
    built = subprocess.run([sys.executable, "-m", "builder", *build], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = dist.glob("*.whl")
    repository = tmp_path / "repository"
    assert run(["bundle", str(wheel), "--output", str(repository / "build"), "--kernel", str(RELU)]) == 0
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-c", CALL, repository]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "called" in done.stdout
