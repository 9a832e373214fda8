"""The cache of compiled files: an edit of Python and of one file, a cold and a warm build, one that is shared by Redis.

usage: python benchmarks/objects.py [FILES]      FILES of CUDA in the kernel that stands for large ones; default 40

Peers in the same run: torch.utils.cpp_extension with pip for relu on the CPU; for the kernel of CUDA files its rendered
project, built by ninja with and without the same ccache by hand. redis-server is used where it is installed.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import paired

from builder.toolchain import this_machine
from builder.toolchain.tool import Search

ROOT = Path(__file__).resolve().parent.parent
RELU, CPU = ROOT / "examples/relu", "torch213-cxx11-cpu-x86_64-linux"
CUDA = "torch-stable-abi210-cu130-x86_64-linux"
CONFIG = """\
[general]
name = "many"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cuda"]

[torch]
src = ["torch-ext/torch_binding.cpp"]
stable-abi = "2.10"

[kernel.many]
backend = "cuda"
depends = ["torch"]
src = [{sources}]
"""
BINDING = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include "registration.h"

{declared}

static torch::stable::Tensor many(const torch::stable::Tensor &input) {{
  auto output = torch::stable::empty_like(input);
  auto *data = static_cast<float *>(output.data_ptr());
{called}
  return output;
}}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {{ ops.def("many(Tensor input) -> Tensor"); }}
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {{ ops.impl("many", TORCH_BOX(&many)); }}
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
"""
SOURCE = """\
#include <cuda_fp16.h>

template <int N> __global__ void scaled_{number}(float *data, int size) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = i < size ? data[i] : 0.0f;
#pragma unroll
  for (int step = 0; step < 16 * N; ++step) value = __half2float(__float2half(value * {number}.5f + N)) * expf(value);
  if (i < size) data[i] = value;
}}

void launch_{number}(float *data, int size) {{
  scaled_{number}<1><<<(size + 255) / 256, 256>>>(data, size);
  scaled_{number}<2><<<(size + 255) / 256, 256>>>(data, size);
  scaled_{number}<3><<<(size + 255) / 256, 256>>>(data, size);
}}
"""


def many(folder: Path, files: int) -> Path:
    """Write a kernel of as many CUDA files, none of which includes torch."""
    names = range(files)
    for path, text in {
        "build.toml": CONFIG.format(sources=", ".join(f'"csrc/f{number}.cu"' for number in names)),
        "torch-ext/torch_binding.cpp": BINDING.format(
            declared="\n".join(f"void launch_{number}(float *, int);" for number in names),
            called="\n".join(f"  launch_{number}(data, input.numel());" for number in names),
        ),
        "torch-ext/many/__init__.py": "from ._ops import ops\n",
        **{f"csrc/f{number}.cu": SOURCE.format(number=number) for number in names},
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


class Machine:
    """A store whose environments another one has made."""

    def __init__(self, folder: Path, environments: Path) -> None:
        folder.mkdir()
        (folder / "environments").symlink_to(environments)
        self.store, self.output = folder, folder / "dist"

    def build(self, kernel: Path, variant: str, *options: str) -> tuple[float, int, int]:
        """Build, and return the seconds, the files that were compiled and all files."""
        command = [sys.executable, "-m", "builder", "build", str(kernel), "--variant", variant, "--json", "--rebuild"]
        command += ["--store", str(self.store), "--output", str(self.output), *options]
        began = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        seconds = time.perf_counter() - began
        objects = [each for each in json.loads(done.stdout)[0]["report"]["files"] if each["output"].endswith(".o")]
        return seconds, sum("cache" not in each for each in objects), len(objects)


def main() -> None:
    """Print a line for each build."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print(paired.machine())
    made = Path(os.environ.get("BUILDER_STORE", Path.home() / ".cache/builder")).resolve() / "environments"
    with tempfile.TemporaryDirectory() as name:
        author(Path(name) / "author", made)
        large(Path(name) / "large", made, files)


def author(folder: Path, environments: Path) -> None:
    """Time an edit of Python, against a build by hand with nothing to do."""
    import build as by_hand  # noqa: PLC0415  a benchmark of its own

    folder.mkdir()
    kernel = Path(shutil.copytree(RELU, folder / "relu"))
    machine = Machine(folder / "store", environments)
    _, nothing_to_do = by_hand.prepare(folder)[0]
    subprocess.run(nothing_to_do, check=True, capture_output=True)
    cold = machine.build(kernel, CPU)
    row("relu, cpu: cold", *cold, cold[0])
    for _ in range(3):
        with (kernel / "torch-ext/relu/__init__.py").open("a", encoding="utf-8") as file:
            file.write("# another line\n")
        row("relu, cpu: one line of Python", *machine.build(kernel, CPU), cold[0])
        began = time.perf_counter()
        subprocess.run(nothing_to_do, check=True, capture_output=True)
        row("cpp_extension + pip: nothing", time.perf_counter() - began, 0, 2, cold[0])


def large(folder: Path, environments: Path, files: int) -> None:
    """Time the kernel of CUDA files: without a cache, cold, warm, shared, and after an edit of one file."""
    folder.mkdir()
    kernel = many(folder / "many", files)
    one, two, three = (Machine(folder / name, environments) for name in ("one", "two", "three"))
    quick = ("--archs", "9.0", "--load-test", "skip")
    off = one.build(kernel, CUDA, *quick, "--no-cache")
    row(f"{files} CUDA files: no cache", *off, off[0])
    row("cold, kept", *one.build(kernel, CUDA, *quick), off[0])
    row("all in the store", *one.build(kernel, CUDA, *quick), off[0])
    with redis(folder / "redis") as url:
        if url is not None:
            row(
                "cold, kept and given to Redis",
                *two.build(kernel, CUDA, *quick, "--cache", url, "--cache-access", "read-write"),
                off[0],
            )
            row("all in Redis, none in the store", *three.build(kernel, CUDA, *quick, "--cache", url), off[0])
    source = kernel / "csrc/f0.cu"
    source.write_text(source.read_text(encoding="utf-8") + "// edited\n", encoding="utf-8")
    row("one file edited", *one.build(kernel, CUDA, *quick), off[0])
    by_ninja(folder, kernel, environments, off[0])


def by_ninja(folder: Path, kernel: Path, environments: Path, whole: float) -> None:
    """Time ninja alone on the rendered project, without a cache and with ccache as people set it up."""
    project = folder / "project"
    render = [sys.executable, "-m", "builder", "render", str(kernel), "--backend", "cuda", "--output", str(project)]
    subprocess.run(render, check=True, cwd=ROOT, capture_output=True)
    root = next(
        path
        for path in sorted(environments.iterdir())
        if next(path.glob("lib/*/site-packages/nvidia/*/bin/nvcc"), None)
    )
    torch = next(root.glob("lib/*/site-packages/torch"))
    toolkit = next(root.glob("lib/*/site-packages/nvidia/*/bin/nvcc")).parent.parent
    program = this_machine.find_ccache(Search(environ={}, digest=str))
    env = {
        **os.environ,
        "CUDACXX": str(toolkit / "bin/nvcc"),
        "CUDAToolkit_ROOT": str(toolkit),
        "CCACHE_DIR": str(folder / "ccache"),
    }
    for way, launcher in (
        ("ninja by hand: cold", ""),
        ("ninja + ccache by hand: cold", program),
        ("ninja + ccache by hand: again", program),
    ):
        shutil.rmtree(folder / "build", ignore_errors=True)
        configure = [
            str(root / "bin/cmake"),
            "-GNinja",
            "-S",
            project,
            "-B",
            folder / "build",
            f"-DKERNEL_TORCH_DIR={torch}",
        ]
        configure += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("CXX", "CUDA")]
        configure += [
            "-DKERNEL_CUDA_ARCHS=9.0",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_MAKE_PROGRAM={root / 'bin/ninja'}",
        ]
        began = time.perf_counter()
        subprocess.run([str(each) for each in configure], check=True, env=env, capture_output=True)
        subprocess.run([str(root / "bin/ninja"), "-C", str(folder / "build")], check=True, env=env, capture_output=True)
        row(way, time.perf_counter() - began, 0, 0, whole)


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[str | None]:
    """Start a server that ends with the block; None where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "--port", str(port), "--save", "", "--dir", str(folder)], stdout=subprocess.DEVNULL
    )
    try:
        time.sleep(1)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def row(what: str, seconds: float, compiled: int, objects: int, whole: float) -> None:
    """Print what a build took, and its share of the whole one."""
    print(f"{what:40} {seconds:8.1f} s {seconds / whole:6.2f} {compiled:4} of {objects} compiled", flush=True)


if __name__ == "__main__":
    main()
