"""Configure a rendered project with CMake, where neither torch nor a toolkit is: only its compile lines are wanted."""

import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from builder.config.values import Backend
from builder.errors import ToolError
from builder.kernel import Kernel
from builder.port import commands, machine
from builder.port.commands import Command
from builder.port.settings import Setting, torch_version
from builder.render import render
from builder.render.sources import header_calls as header_libraries
from builder.run import run

_COMPILER = """set(CMAKE_CUDA_COMPILER_FORCED TRUE)
set(CMAKE_CUDA_COMPILER_ID_RUN TRUE)
set(CMAKE_CUDA_COMPILER_ID NVIDIA)
set(CMAKE_CUDA_COMPILER_VERSION {version}.0)
set(CMAKE_CUDA_COMPILER_TOOLKIT_ROOT "{root}")
set(CMAKE_CUDA_COMPILER_LIBRARY_ROOT "{root}")
set(CMAKE_CUDA_COMPILER_PRODUCED_OUTPUT [==[#$ PATH=/usr/bin
#$ LIBRARIES=  "-L{root}/lib64"
#$ INCLUDES="-I{root}/include"
#$ g++ -o "a.out" "a.o" "-L{root}/lib64" -lcudart
]==])
"""
"""What CMake would learn of nvcc by compiling with it."""
_TORCH_LIBRARIES = ("torch", "torch_cpu", "torch_cuda", "torch_python", "c10", "c10_cuda")
_CUDA_LIBRARIES = (
    *("cudart", "cudart_static", "cudadevrt", "cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse"),
    *(
        "nvrtc",
        "nvrtc_builtins",
        "nvJitLink",
        "nvjitlink",
        "nvml",
        "cupti",
        "nppc",
        "nvjpeg",
        "cufile",
        "nccl",
        "cudnn",
    ),
)


def compile_commands(
    kernel: Kernel, backend: Backend, setting: Setting, scratch: Path, *, environ: Mapping[str, str]
) -> tuple[tuple[Command, ...], dict[str, str]]:
    """Return the compile lines of a kernel's project, and the names of the folders in them.

    Raises:
        ToolError: CMake cannot configure it.
    """
    project, build, toolkit, torch = (scratch / name for name in ("project", "build", "cuda", "torch"))
    for folder in (project, build):
        shutil.rmtree(folder, ignore_errors=True)
    machine.make(setting, scratch, scratch, pretended=(), believed=())
    render(kernel, backend, allow_unsafe_flags=True).write(project)
    _torch(torch, setting)
    settings = {
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "CMAKE_MAKE_PROGRAM": str(_tool("ninja", environ)),
        "KERNEL_TORCH_DIR": str(torch),
        "Python_EXECUTABLE": sys.executable,
        **_python(scratch),
        **_headers(kernel, backend, scratch),
        **(_toolkit(toolkit, setting.cuda) if setting.cuda is not None and backend is Backend.CUDA else {}),
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    done = run([_tool("cmake", environ), "-G", "Ninja", "-S", project, "-B", build, *options], env=dict(environ))
    if done.returncode != 0:
        raise ToolError(
            f"CMake cannot configure the project of '{kernel.config.general.name}'\n{done.output[-2000:]}",
            help=f"look at the project: builder render --backend {backend} --output PROJECT",
        )
    roots = {
        str(project): "",
        str(project / "cmake"): "<cmake>",
        str(build): "<build>",
        str(toolkit): "<cuda>",
        str(torch): "<torch>",
    }
    roots |= {str(scratch / "headers"): "<headers>", sysconfig.get_path("include"): "<python>"}
    roots |= {str(scratch / "python"): "<python>"}
    roots |= {str(scratch / "foreign" / name): name for name in kernel.config.sources}
    return commands.read(build / "compile_commands.json"), roots


def _tool(name: str, environ: Mapping[str, str]) -> Path:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name, path=environ.get("PATH"))
    if found is None:
        raise ToolError(f"there is no {name}", help=f"install it beside builder: pip install {name}")
    return Path(found)


def _torch(folder: Path, setting: Setting) -> None:
    local = "+cpu" if setting.cuda is None else f"+cu{setting.cuda.replace('.', '')}"
    cuda = "None" if setting.cuda is None else f"'{setting.cuda}'"
    text = f"__version__ = '{torch_version()}{local}'\ncuda: Optional[str] = {cuda}\n"
    machine.text(folder / "version.py", text)
    for name in _TORCH_LIBRARIES:
        (folder / "lib" / f"lib{name}.so").touch()


def _toolkit(folder: Path, version: str) -> dict[str, str]:
    machine.text(folder / "include/cuda_runtime.h", "")
    for name in _CUDA_LIBRARIES:
        machine.text(folder / f"lib64/lib{name}.so", "")
    machine.text(folder / "lib64/stubs/libcuda.so", "")
    machine.text(folder / "compiler.cmake", _COMPILER.format(version=version, root=folder))
    return {
        "CMAKE_CUDA_COMPILER": str(folder / "bin/nvcc"),
        "CMAKE_PROJECT_INCLUDE_BEFORE": str(folder / "compiler.cmake"),
        "CUDAToolkit_ROOT": str(folder),
    }


def _python(scratch: Path) -> dict[str, str]:
    """Return where headers of Python are; stand-ins where this Python has none."""
    if (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return {}
    version = ".".join(map(str, sys.version_info[:3]))
    machine.text(scratch / "python/patchlevel.h", f'#define PY_VERSION "{version}"\n')
    for name in ("Python.h", "pyconfig.h"):
        machine.text(scratch / "python" / name, "")
    return {"Python_INCLUDE_DIR": str(scratch / "python")}


def _headers(kernel: Kernel, backend: Backend, scratch: Path) -> dict[str, str]:
    """Return empty folders in place of header-only libraries and foreign sources, so that nothing is fetched."""
    found = {}
    for library in header_libraries(kernel.config, backend):
        folder = scratch / "headers" / str(library["NAME"])
        machine.text(folder / str(library["CONTAINS"]), "")
        found[str(library["VARIABLE"])] = str(folder)
    for name in kernel.config.sources:
        folder = scratch / "foreign" / name
        folder.mkdir(parents=True, exist_ok=True)
        for path in _named(kernel, name):
            machine.text(folder / path, "")
        found[f"FETCHCONTENT_SOURCE_DIR_{name.upper()}"] = str(folder)
    return found


def _named(kernel: Kernel, source: str) -> Iterator[str]:
    """Yield the files of a foreign source that `src` lists."""
    for _, table in kernel.config.tables():
        yield from (entry.partition(":")[2] for entry in table.src if entry.startswith(f"{source}:"))
