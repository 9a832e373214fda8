"""`builder build` of relu (cpu) against the two bare g++ commands, and against torch.utils.cpp_extension with pip.

usage: python benchmarks/build.py [RUNS]        torch must be importable
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import paired

ROOT = Path(__file__).resolve().parent.parent
RELU = ROOT / "examples/relu"
VARIANT = "torch213-cxx11-cpu-x86_64-linux"
SETUP = """
import os
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(
    name="relu-by-hand",
    version="1.0.0",
    packages=[],
    ext_modules=[CppExtension("relu_by_hand", ["torch-ext/torch_binding.cpp", "relu_cpu/relu.cpp"],
        include_dirs=[os.path.abspath("torch-ext")], define_macros=[("CPU_KERNEL", None)],
        extra_compile_args=["-std=c++20", "-O3"])],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
"""


def main() -> None:
    """Print the tables: a full build, and one with nothing to do."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        builder = [
            sys.executable,
            "-m",
            "builder",
            "build",
            str(RELU),
            "--variant",
            VARIANT,
            "--output",
            name + "/dist",
        ]
        by_hand, bare = prepare(folder)
        env = {**os.environ, "CCACHE_DISABLE": "1", "MAX_JOBS": str(os.cpu_count())}
        subprocess.run([*builder, "--rebuild"], check=True, env=env, capture_output=True)
        print(paired.machine())
        full = {
            "bare g++": bare,
            "builder build --rebuild": [*builder, "--rebuild"],
            "builder build, as it comes": edited(builder, folder / "relu"),
            "cpp_extension + pip": by_hand[0],
        }
        subprocess.run(full["builder build, as it comes"], check=True, env=env, capture_output=True)
        paired.table(paired.run(full, runs=runs, warmups=0, env=env), peer="bare g++")
        again = {"builder build, unchanged": builder, "cpp_extension + pip, again": by_hand[1]}
        paired.table(paired.run(again, runs=runs, warmups=1, env=env), peer="builder build, unchanged")


def edited(builder: list[str], kernel: Path) -> list[str]:
    """Return the command that builds a copy of relu after an edit of both sources, with the cache of compiled files.

    The files of every library, which stand in for newer ones, are of the cache, as after a build of any kernel.
    """
    shutil.copytree(RELU, kernel)
    edit = 'for file in torch-ext/torch_binding.cpp relu_cpu/relu.cpp; do echo "// $(date +%s%N)" >>"$0/$file"; done'
    command = [str(kernel) if word == str(RELU) else word for word in builder]
    return ["sh", "-c", f'{edit}; unset CCACHE_DISABLE; exec "$@"', str(kernel), *command]


def prepare(folder: Path) -> tuple[tuple[list[str], list[str]], list[str]]:
    """Write the peers' projects; return the commands of a full and a second pip build, and of bare g++."""
    project = folder / "project"
    subprocess.run(
        [sys.executable, "-m", "builder", "render", str(RELU), "--backend", "cpu", "--output", str(project)], check=True
    )
    (project / "setup.py").write_text(SETUP, encoding="utf-8")
    (project / "pyproject.toml").unlink()
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "--quiet",
        "-w",
        str(folder / "out"),
    ]
    # pip builds a local folder in place: without its build directory everything is compiled again.
    full = ["sh", "-c", f'rm -rf "{project}/build" && exec "$@"', "sh", *pip, str(project)]
    return (full, [*pip, str(project)]), gxx(project, folder)


def gxx(project: Path, folder: Path) -> list[str]:
    """Return the two compilations and the link that any build of relu must run, two at a time."""
    import torch  # noqa: PLC0415  slow

    lib = Path(torch.__file__).parent
    flags = "-std=c++20 -O3 -fPIC -DNDEBUG -DCPU_KERNEL -DTORCH_EXTENSION_NAME=_relu_cpu -D_GLIBCXX_USE_CXX11_ABI=1"
    includes = f"-I{project}/torch-ext -I{lib}/include -I{lib}/include/torch/csrc/api/include {python_include()}"
    script = (
        f"g++ {flags} {includes} -DPy_LIMITED_API=0x03090000 "
        f"-c {project}/torch-ext/torch_binding.cpp -o {folder}/a.o & "
        f"g++ {flags} {includes} -c {project}/relu_cpu/relu.cpp -o {folder}/b.o; wait; "
        f"g++ -shared -o {folder}/relu.so {folder}/a.o {folder}/b.o -L{lib}/lib -ltorch_cpu -lc10"
    )
    return ["sh", "-c", script]


def python_include() -> str:
    """Return the flag for Python's headers."""
    import sysconfig  # noqa: PLC0415

    return f"-I{sysconfig.get_path('include')}"


if __name__ == "__main__":
    main()
