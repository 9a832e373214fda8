"""The wheel of a kernel with 40 CUDA files for ten capabilities: by `builder build`, and by torch's `cpp_extension`.

usage: python benchmarks/size.py alike|different [FILES] [FOLDER]    FOLDER: is kept; torch must be importable

The files of `alike` differ in one constant, those of `different` in all that their kernels compute. Both ways compile
the same sources for the same capabilities by the same nvcc, that of a pinned environment of the store, each with its
own default flags. No GPU is asked: loading is `torch.ops.load_library` in a new process, after `import torch`,
with libraries that have nothing in place of those of torch for GPUs, so that a torch for the CPU will do.
"""

import os
import random
import subprocess
import sys
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import objects
import paired

CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "9.0a", "10.0", "10.3", "12.0", "12.1")
RUNS = 7
NVCC = "*/lib/*/site-packages/nvidia/*/bin/nvcc"
STATEMENTS = (
    "{a} = {a} * {x}f + {b};",
    "{a} = expf({b}) * {x}f - {a};",
    "{a} = rsqrtf(fabsf({b}) + {x}f);",
    "{a} += tanhf({b} * {x}f);",
    "if ({a} > {b}) {c} = {a} / ({b} + {x}f);",
    "tile[threadIdx.x % 32][{n}] = {a}; __syncthreads(); {b} += tile[(threadIdx.x + {n}) % 32][{n}];",
    "for (int step = 0; step < {n} * N; ++step) {a} = fmaf({a}, {b}, {x}f * step);",
    "{a} = __shfl_xor_sync(0xffffffff, {b}, {n} % 31 + 1) + {c};",
    "{a} = sinf({b}) * cosf({c} + {x}f);",
    "{a} = fmaxf({b}, {c}) + log1pf(fabsf({a}));",
)
SOURCE = """
#include <cuda_fp16.h>

static __device__ float read(float value) {{ return value; }}
static __device__ float read(__half value) {{ return __half2float(value); }}
static __device__ void write(float *to, float value) {{ *to = value; }}
static __device__ void write(__half *to, float value) {{ *to = __float2half(value); }}

template <typename T, int N> __global__ void mixed_{number}(T *out, int size) {{
  __shared__ float tile[32][33];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i < size ? read(out[i]) : 0.f, b = a + N, c = b * a, d = c - i;
  {statements}
  if (i < size) write(out + i, a + b + c + d);
}}

void launch_{number}(float *data, int size) {{
  mixed_{number}<float, 1><<<(size + 255) / 256, 256>>>(data, size);
  mixed_{number}<float, 3><<<(size + 255) / 256, 256>>>(data, size);
  mixed_{number}<__half, 2><<<(size + 255) / 256, 256>>>(reinterpret_cast<__half *>(data), size);
}}
"""
LINES = 40
SETUP = """
import os
from glob import glob
import torch.utils.cpp_extension
from setuptools import setup
torch.version.cuda = "13.0"
torch.utils.cpp_extension.CUDA_HOME = os.environ["CUDA_HOME"]
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(
    name="many-by-hand", version="1", packages=["many"], package_dir={"many": "torch-ext/many"},
    ext_modules=[CUDAExtension("many._many", ["torch-ext/torch_binding.cpp", *sorted(glob("csrc/*.cu"))],
        library_dirs=[os.environ["TORCH_FOR_GPUS"]])],
    cmdclass={"build_ext": BuildExtension},
)
"""
REGISTRATION = """
#pragma once
#include <Python.h>
#define NAME_OF(name) #name
#define STABLE_TORCH_LIBRARY_EXPAND(name, ops) STABLE_TORCH_LIBRARY(name, ops)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(name, key, ops) STABLE_TORCH_LIBRARY_IMPL(name, key, ops)
#define MODULE(name) extern "C" PyObject *PyInit_##name() { \\
  static PyModuleDef module = {PyModuleDef_HEAD_INIT, NAME_OF(name), nullptr, 0, nullptr}; \\
  return PyModule_Create(&module); }
#define REGISTER_EXTENSION(name) MODULE(name)
"""
LOAD = """
import sys, time
import torch
began = time.perf_counter()
torch.ops.load_library(sys.argv[1])
print(time.perf_counter() - began)
"""


def main() -> None:
    """Print a line for each way."""
    if sys.argv[1:2] not in (["alike"], ["different"]):
        sys.exit(__doc__)
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 40  # noqa: PLR2004
    print(paired.machine())
    environments = Path(os.environ.get("BUILDER_STORE", Path.home() / ".cache/builder")).resolve() / "environments"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else Path(name)  # noqa: PLR2004
        folder.mkdir(exist_ok=True)
        nvcc = next(path for path in sorted(environments.glob(NVCC)) if is_here(path))
        gpus = stubs(folder / "gpus", nvcc.parents[3] / "torch/lib")
        ways = {"cpp_extension": by_hand(folder, nvcc, gpus, files), "builder": built(folder, environments, files)}
        print("| way | wheel | of `cpp_extension` | library | of `cpp_extension` | loading, ms |")
        print("|---|---|---|---|---|---|")
        first: tuple[int, int] | None = None
        for way, wheel in ways.items():
            library = unpacked(wheel, folder / way)
            sizes = wheel.stat().st_size, library.stat().st_size
            first = first or sizes
            shares = " | ".join(f"{size:,} | {size / whole:.0%}" for size, whole in zip(sizes, first, strict=True))
            seconds = loading(library, (gpus, nvcc.parents[1] / "lib"))
            print(f"| {way} | {shares} | {1000 * seconds:.1f} |", flush=True)


def many(folder: Path, files: int) -> Path:
    """Write the kernel, and return its folder."""
    objects.many(folder, files)
    if sys.argv[1] == "different":
        for number in range(files):
            draw = random.Random(number)  # the same files in every run
            (folder / f"csrc/f{number}.cu").write_text(
                SOURCE.format(number=number, statements="\n  ".join(statement(draw) for _ in range(LINES))),
                encoding="utf-8",
            )
    return folder


def statement(draw: random.Random) -> str:
    """Return a statement over some of four variables."""
    a, b, c = draw.sample("abcd", 3)
    return draw.choice(STATEMENTS).format(a=a, b=b, c=c, x=f"{draw.uniform(0.5, 2):.4f}", n=draw.randint(1, 30))


def is_here(nvcc: Path) -> bool:
    """Whether a compiler is that of CUDA 13.0, for which `builder` builds, and the torch beside it for this machine."""
    libraries = nvcc.parents[3] / "torch/lib"
    said = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    if "release 13.0" not in said:
        return False
    return (libraries / "libtorch_cuda.so").exists() and not (libraries / "libarm_compute.so").exists()


def stubs(folder: Path, real: Path) -> Path:
    """Return a folder of libraries without a symbol, in place of those that need a driver or more of CUDA."""
    folder.mkdir(exist_ok=True)
    for name in ("libc10_cuda.so", "libtorch_cuda.so"):
        if not (real / name).exists():
            sys.exit(f"no {name} in {real}")
        command = ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", folder / name, "-xc", os.devnull]
        subprocess.run(command, check=True)
    return folder


def by_hand(folder: Path, nvcc: Path, gpus: Path, files: int) -> Path:
    """Return the wheel that setuptools and `cpp_extension` make."""
    kernel = many(folder / "by-hand", files)
    (kernel / "build.toml").unlink()
    (kernel / "setup.py").write_text(textwrap.dedent(SETUP), encoding="utf-8")
    (kernel / "torch-ext/registration.h").write_text(REGISTRATION, encoding="utf-8")
    env = {
        **os.environ,
        "CUDA_HOME": str(toolkit(folder / "toolkit", nvcc.parents[1])),
        "PATH": f"{nvcc.parents[6] / 'bin'}:{os.environ['PATH']}",
        "TORCH_FOR_GPUS": str(gpus),
        "TORCH_CUDA_ARCH_LIST": ";".join(CAPABILITIES),
    }
    timed("cpp_extension", [sys.executable, "setup.py", "-q", "bdist_wheel"], cwd=kernel, env=env)
    return next((kernel / "dist").glob("*.whl"))


def toolkit(folder: Path, real: Path) -> Path:
    """Return a toolkit with its libraries where those of an installed one are."""
    folder.mkdir(exist_ok=True)
    for name, target in {"bin": "bin", "include": "include", "nvvm": "nvvm", "lib64": "lib"}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(real / target)
    return folder


def built(folder: Path, environments: Path, files: int) -> Path:
    """Return the wheel that `builder build` makes."""
    kernel = many(folder / "many", files)
    config = kernel / "build.toml"
    listed = ", ".join(f'"{capability}"' for capability in CAPABILITIES)
    config.write_text(f"{config.read_text(encoding='utf-8')}cuda-capabilities = [{listed}]\n", encoding="utf-8")
    (folder / "store").mkdir(exist_ok=True)
    if not (folder / "store/environments").exists():
        (folder / "store/environments").symlink_to(environments)
    command = [sys.executable, "-m", "builder", "build", str(kernel), "--variant", objects.CUDA, "--load-test", "skip"]
    command += ["--store", str(folder / "store"), "--output", str(folder / "dist")]
    timed("builder", command, cwd=objects.ROOT, env=dict(os.environ))
    return next((folder / "dist").glob("*.whl"))


def timed(way: str, command: list[str], *, cwd: Path, env: dict[str, str]) -> None:
    """Run a command, and print how long it took."""
    began = time.perf_counter()
    subprocess.run(command, check=True, cwd=cwd, env=env, stdout=subprocess.DEVNULL)
    print(f"{way}: {time.perf_counter() - began:.0f} s", flush=True)


def unpacked(wheel: Path, folder: Path) -> Path:
    """Return the library of a wheel, as it is installed."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return Path(archive.extract(name, folder))


def loading(library: Path, folders: Sequence[Path]) -> float:
    """Return the least seconds that loading takes, of some new processes."""
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders))}
    command = [sys.executable, "-c", LOAD, str(library)]
    done = (subprocess.run(command, check=True, capture_output=True, text=True, env=env) for _ in range(RUNS))
    return min(float(each.stdout) for each in done)


if __name__ == "__main__":
    main()
