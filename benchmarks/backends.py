"""Each example on each backend that compiles here: the rendered project against its own bare compiler commands.

The project is configured by CMake alone, and with what `builder build` keeps of an earlier build: what CMake found out
about the compilers. Where torch.utils.cpp_extension can build the same sources, it is timed, too. Peak memory: that of
the largest process.

usage: python benchmarks/backends.py [RUNS] [EXAMPLE/BACKEND ...]        torch and tvm_ffi must be importable

CUDA_TORCH names the folder of a torch for CUDA, such as one in an environment of the store; without it relu/cuda is
left out. That one is built for one capability alone: with all headers of torch, each takes long. scale-hip is no
example but a kernel of the tests, for HIP by Debian's hipcc and two of its architectures.
"""

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import paired

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from builder.make.compiler_answers import CompilerAnswers  # noqa: E402
from builder.run import Completed  # noqa: E402
from tests.integration import rocm  # noqa: E402

ROWS = (
    *("relu/cpu", "relu/cuda", "rmsnorm-stable/cpu", "rmsnorm-stable/cuda"),
    *("relu-tvm-ffi/cpu", "relu-tvm-ffi/cuda", "scale-hip/rocm"),
)
KERNELS = {"scale-hip": ROOT / "tests/integration/kernels/scale-hip"}
DEFINITIONS = {"relu/cuda": ["-DKERNEL_CUDA_ARCHS=9.0"], "scale-hip/rocm": ["-DKERNEL_ROCM_ARCHS=gfx90a;gfx1030"]}
SOURCES = {  # for cpp_extension: sources, include folders, flags
    "relu/cpu": (("torch-ext/torch_binding.cpp", "relu_cpu/relu.cpp"), ("-DCPU_KERNEL",)),
    "rmsnorm-stable/cpu": (
        ("torch-ext/torch_binding.cpp", "rmsnorm_cpu/rmsnorm.cpp"),
        ("-DCPU_KERNEL", "-fopenmp-simd", "-DTORCH_TARGET_VERSION=0x020a000000000000"),
    ),
    "rmsnorm-stable/cuda": (
        ("torch-ext/torch_binding.cpp", "rmsnorm_cuda/rmsnorm.cu"),
        ("-DCUDA_KERNEL", "-DUSE_CUDA", "-DTORCH_TARGET_VERSION=0x020a000000000000"),
    ),
}
SETUP = """
import os, torch
torch.version.cuda = torch.version.cuda or "{cuda}"  # a build for CPU has the stable headers, too
from setuptools import setup
from torch.utils import cpp_extension
cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or os.environ["CUDA_HOME"]  # not looked for by a build for CPU
from torch.utils.cpp_extension import BuildExtension, {kind}
flags = {flags!r}
setup(
    name="by-hand",
    version="1.0.0",
    ext_modules=[{kind}("by_hand", {sources!r}, include_dirs=[{root!r} + "/torch-ext"], library_dirs=[{stubs!r}],
        extra_compile_args={{"cxx": [*flags, "-O3"], "nvcc": [*flags, "-O3"]}})],
    cmdclass={{"build_ext": BuildExtension.with_options(use_ninja=True)}},
)
"""
PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "a") as peaks:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=peaks)
sys.exit(code)
"""


def main() -> None:
    """Print a table for each row."""
    runs = int(sys.argv[1]) if sys.argv[1:] else 3
    print(f"{paired.machine()}; load {os.getloadavg()[0]:.1f}")
    for row in sys.argv[2:] or ROWS:
        if row.endswith("/cuda") and shutil.which("nvcc") is None:
            print(f"\n{row}: no nvcc")
            continue
        if row == "relu/cuda" and not os.environ.get("CUDA_TORCH"):
            print(f"\n{row}: no CUDA_TORCH")
            continue
        if row.endswith("/rocm") and rocm.why_not():
            print(f"\n{row}: {rocm.why_not()}")
            continue
        with tempfile.TemporaryDirectory() as name:
            measure(row, Path(name), runs=runs)


def measure(row: str, folder: Path, *, runs: int) -> None:
    """Time one example on one backend."""
    example, backend = row.split("/")
    project = folder / "project"
    kernel = KERNELS.get(example, ROOT / "examples" / example)
    render = [sys.executable, "-m", "builder", "render", str(kernel), "--backend", backend]
    subprocess.run([*render, "--output", str(project)], check=True, cwd=ROOT)
    torch = torch_of(row)
    env = {**os.environ, "CCACHE_DISABLE": "1", "MAX_JOBS": str(os.cpu_count())}
    if backend == "rocm":
        thrust = rocm.thrust(folder / "debian")
        env["ROCM_PATH"] = str(rocm.rocm_root(folder, thrust))
        torch = str(rocm.rocm_torch(folder / "torch", Path(torch)))
    definitions = [f"-DKERNEL_TORCH_DIR={torch}", *DEFINITIONS.get(row, [])]
    whole = cmake(project, folder / "build", definitions)
    subprocess.run(whole, check=True, capture_output=True, env=env)
    kept = answers(folder / "build", folder / "kept")
    commands = {
        "bare commands": bare(folder),
        "rendered project": whole,
        "rendered, compilers known": cmake(project, folder / "build", definitions, kept=kept),
    }
    if row in SOURCES:
        commands["cpp_extension"] = cpp_extension(row, project, folder)
    wrapped = {
        name: [sys.executable, "-I", "-c", PEAK, str(folder / name), *command] for name, command in commands.items()
    }
    env["CUDA_HOME"] = toolkit(folder / "build")
    env["CMAKE_ARGS"] = shlex.join(definitions)
    env["TORCH_CUDA_ARCH_LIST"] = ";".join(capabilities(folder / "build"))
    figures = paired.run(wrapped, runs=runs, warmups=0, env=env)
    print(f"\n{row}: wheel of {wheel(project, folder, env) / 1024:.0f} KiB")
    paired.table(figures, peer="bare commands")
    for name in commands:
        peaks = [int(line) / 1024 for line in (folder / name).read_text(encoding="ascii").split()]
        print(f"{name:36} {statistics.median(peaks):6.0f} MiB")


def torch_of(row: str) -> str:
    """Return the folder of the torch to build against: a stable or tvm-ffi kernel takes any."""
    if row == "relu/cuda":
        return os.environ["CUDA_TORCH"]
    return next(iter(find_spec("torch").submodule_search_locations))  # type: ignore[union-attr, arg-type]


def cmake(project: Path, build: Path, definitions: Sequence[str], *, kept: Path | None = None) -> list[str]:
    """Return the command that configures and builds a project from nothing, or from a copy of what is kept."""
    configure = ["cmake", "-GNinja", "-S", project, "-B", build, f"-DPython_EXECUTABLE={sys.executable}", *definitions]
    place = "" if kept is None else f"cp -R {shlex.quote(str(kept))} {shlex.quote(str(build))} && "
    script = f"rm -rf {shlex.quote(str(build))} && {place}{shlex.join(map(str, configure))} && "
    return ["sh", "-c", f"{script}cmake --build {shlex.quote(str(build))}"]


class Memory(dict[str, Mapping[str, object]]):
    """Notes that last as long as a row."""

    def note(self, name: str) -> Mapping[str, object] | None:
        """Return a note."""
        return self.get(name)

    def set_note(self, name: str, value: Mapping[str, object]) -> None:
        """Keep a note."""
        self[name] = value


def answers(build: Path, kept: Path) -> Path:
    """Return a build folder that has what CMake found out about the compilers, and nothing else."""
    notes = Memory()
    kept.mkdir()
    for folder in (build, kept):
        known = CompilerAnswers(notes=notes, name="", digest="", build=folder)
        known.around(lambda: Completed(returncode=0, output="", peak=0))
    return kept


def bare(folder: Path) -> list[str]:
    """Return what ninja ran, without ninja: all compilations, as many at once as there are cores, then links."""
    by_hand = folder / "bare"
    shutil.copytree(folder / "build", by_hand)
    listed = subprocess.run(
        ["ninja", "-C", str(folder / "build"), "-t", "commands"], check=True, capture_output=True, text=True
    ).stdout
    # What the project makes to link to is no command of a compiler, and its result is in the copy.
    lines = [line for line in listed.splitlines() if not line.startswith("ninja: ") and "make.cmake" not in line]
    lines = [line.replace(str(folder / "build"), str(by_hand)) for line in lines]
    compiled = [line for line in lines if " -c " in line]
    (folder / "compile").write_text("\n".join(compiled) + "\n", encoding="utf-8")
    (folder / "link").write_text("\n".join(line for line in lines if " -c " not in line) + "\n", encoding="utf-8")
    run = f"xargs -a ../compile -d '\\n' -P {os.cpu_count()} -n 1 sh -c && sh -e ../link"
    return ["sh", "-c", f"cd {shlex.quote(str(by_hand))} && {run}"]


def cpp_extension(row: str, project: Path, folder: Path) -> list[str]:
    """Return the command that builds the same sources with a setup.py."""
    sources, flags = SOURCES[row]
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in ("c10_cuda", "torch_cuda"):  # what a build of torch for CPU lacks is only linked to
        soname = f"lib{name}.so"
        subprocess.run(
            ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", "-o", str(stubs / soname), "-x", "c", "/dev/null"],
            check=True,
        )
    by_hand = folder / "setup"
    shutil.copytree(project, by_hand)
    text = SETUP.format(
        cuda="13.0",
        kind="CUDAExtension" if row.endswith("cuda") else "CppExtension",
        flags=list(flags),
        sources=list(sources),
        root=str(by_hand),
        stubs=str(stubs),
    )
    (by_hand / "setup.py").write_text(text, encoding="utf-8")
    (by_hand / "pyproject.toml").unlink()
    build: Sequence[str] = [sys.executable, "setup.py", "build_ext", "--build-lib", "out"]
    return ["sh", "-c", f"cd {shlex.quote(str(by_hand))} && rm -rf build out && {shlex.join(build)}"]


def cached(build: Path, name: str) -> str | None:
    """Return the value of an entry of a CMake cache."""
    lines = (build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith(f"{name}:")), None)


def toolkit(build: Path) -> str:
    """Return the CUDA toolkit that CMake chose; nothing for other backends."""
    compiler = cached(build, "CMAKE_CUDA_COMPILER")
    return "" if compiler is None else str(Path(compiler).parent.parent)


def capabilities(build: Path) -> list[str]:
    """Return the capabilities that CMake chose."""
    plans = list(build.glob("kernel-plan.json"))
    archs: list[str] = json.loads(plans[0].read_text(encoding="utf-8"))["archs"] if plans else []
    return archs


def wheel(project: Path, folder: Path, env: dict[str, str]) -> int:
    """Return the bytes of the wheel."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*pip, "-w", str(folder / "dist"), str(project)], check=True, env=env)
    (path,) = (folder / "dist").glob("*.whl")
    return path.stat().st_size


if __name__ == "__main__":
    main()
