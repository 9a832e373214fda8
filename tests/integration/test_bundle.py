"""The public client loads what `builder bundle` laid out, without a network, and its op gives the right result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builder.cli import run

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
LOAD = """
import sys
from pathlib import Path
import torch
from torch.nn import functional as F
from kernels import get_local_kernel

kernel = get_local_kernel(Path(sys.argv[1]), backend="cpu")
assert Path(kernel.__file__).is_relative_to(Path(sys.argv[1]).resolve()), kernel.__file__
x = torch.randn(33, 66, requires_grad=True)
"""
CALLS = {
    "relu": """
y = kernel.relu(x)
y.sum().backward()
assert torch.equal(y, torch.relu(x)), "wrong result"
assert torch.equal(x.grad, (x > 0).to(x.dtype)), "wrong gradient"
""",
    "rmsnorm-stable": """
weight = torch.randn(66)
torch.testing.assert_close(kernel.rms_norm(x, weight, 1e-5), F.rms_norm(x, (66,), weight, 1e-5))
""",
    "silu-and-mul": """
gate, up = x.chunk(2, dim=-1)
torch.testing.assert_close(kernel.silu_and_mul(x), F.silu(gate) * up)
""",
}


@pytest.mark.parametrize("example", CALLS)
def test_the_client_loads_a_bundled_kernel_and_calls_it(store, tmp_path, example):
    kernel, dist = EXAMPLES / example, tmp_path / "dist"
    build = ["build", kernel, "--backend", "cpu", "--no-isolation", "--output", dist, "--store", store]
    built = subprocess.run([sys.executable, "-m", "builder", *build], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = dist.glob("*.whl")
    repository = tmp_path / "repository"
    assert run(["bundle", str(wheel), "--output", str(repository / "build"), "--kernel", str(kernel)]) == 0
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-c", LOAD + CALLS[example] + 'print("called")', repository]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "called\n"
