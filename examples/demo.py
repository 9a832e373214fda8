"""The main job on two real kernels: build, audit, install into a clean environment, call. Run by `make demo`."""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from builder.environment import fetch, indexes, interpreters
from builder import matrix, pins
from builder.cli.arguments import default_store
from builder.kernel import load

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"
SYSTEM = f"{'aarch64' if platform.machine() == 'arm64' else platform.machine()}-{sys.platform}"
CXX11 = "-cxx11" if sys.platform == "linux" else ""
KERNELS = {
    "relu": f"torch213{CXX11}-cpu-{SYSTEM}",
    "rmsnorm-stable": f"torch-stable-abi210-cpu-{SYSTEM}",
}
CALLS = {
    "relu": """
x = torch.randn(1000, 33, requires_grad=True)
y = relu.relu(x)
torch.testing.assert_close(y, torch.relu(x))
y.sum().backward()
torch.testing.assert_close(x.grad, (x > 0).float())
print(f"relu.relu on {tuple(x.shape)}: equal to torch.relu, and so is the gradient")
""",
    "rmsnorm-stable": """
x, w = torch.randn(64, 512), torch.randn(512)
y = rmsnorm_stable.rms_norm(x, w, 1e-6)
torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, (512,), w, 1e-6))
print(f"rmsnorm_stable.rms_norm on {tuple(x.shape)}: equal to torch.nn.functional.rms_norm")
""",
}


def main() -> None:
    """Run the line for each kernel and say what was done, where it is and how long it took."""
    began = time.monotonic()
    for kernel, variant in KERNELS.items():
        print(f"\n== {kernel} ({variant})")
        wheel = build(kernel, variant)
        step("audit", [sys.executable, "-m", "builder", "audit", str(wheel)])
        call(kernel, wheel)
    print(f"\nThe wheels are in {DEMO / 'dist'}. Everything took {time.monotonic() - began:.1f} s.")


def build(kernel: str, variant: str) -> Path:
    """Build one cell and return its wheel."""
    command = [sys.executable, "-m", "builder", "build", str(ROOT / "examples" / kernel)]
    command += ["--variant", variant, "--output", str(DEMO / "dist"), "--json"]
    result = json.loads(step("build", command, stdout=subprocess.PIPE))
    return Path(result[0]["wheel"])


def call(kernel: str, wheel: Path) -> None:
    """Install a wheel into a clean environment, beside the torch it was built for, and call it there."""
    clean = DEMO / "environments" / kernel
    python = clean / "bin/python"
    clean_environment(kernel, clean)
    uv = str(Path(sys.executable).with_name("uv"))
    # Offline: everything the wheel requires must be there already.
    step("install", [uv, "pip", "install", "--quiet", "--offline", "--python", str(python), str(wheel)])
    script = f"import torch, {kernel.replace('-', '_')}\n{CALLS[kernel]}"
    step("call", [str(python), "-c", script], cwd=DEMO)


def clean_environment(kernel: str, path: Path) -> None:
    """Make an environment with nothing but the pinned torch of the cell."""
    began = time.monotonic()
    where = indexes.read(os.environ)
    cell = matrix.select(load(ROOT / "examples" / kernel).config, [row for row in matrix.rows() if row.set == "release"])
    wanted = pins.Requirement.of(next(each for each in cell if each.variant == KERNELS[kernel]), "")
    known = pins.load()
    found = interpreters.interpreter_for(known, wanted, search=lambda tag: interpreters.find(tag, finders=where))
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", str(found.path), str(path)], check=True)
    cache = default_store() / "uv"
    cache.mkdir(parents=True, exist_ok=True)
    pinned = known.environment(replace(wanted, python=found.tag))
    fetch.Installer(finders=where).install(pinned, into=path, cache=cache)
    print(f"   clean environment with torch: {time.monotonic() - began:.1f} s")


def step(name: str, command: list[str], *, stdout: int | None = None, cwd: Path | None = None) -> str:
    """Run a command, say how long it took, and stop the demo when it fails."""
    began = time.monotonic()
    sys.stdout.flush()
    done = subprocess.run(command, check=False, stdout=stdout, text=True, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"demo: '{name}' failed with exit code {done.returncode}")
    print(f"   {name}: {time.monotonic() - began:.1f} s")
    return done.stdout or ""


main()
