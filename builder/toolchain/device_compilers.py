"""Find the compilers for GPUs, each with its toolkit: nvcc, hipcc, icpx and Metal's."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builder.errors import NotHereError, ToolError
from builder.toolchain.tool import Search, Tool, require_release

_SYSTEM_CUDA = Path("/usr/local/cuda")
_CUDA_PARTS = (
    *("bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink", "nvvm/bin/cicc", "bin/nvcc.profile"),
    *("nvvm/libdevice/libdevice.10.bc", "include/cuda_runtime_api.h", "include/cuda_fp16.hpp"),
)
HIP_PLATFORM: Final = {"HIP_PLATFORM": "amd"}
"""The platform for hipcc and hipconfig: with nvcc but no clang on PATH, they would choose NVIDIA."""
_SYSTEM_ROCM = Path("/opt/rocm")
ONEAPI_PROGRAMS = (
    *("clang", "clang-linker-wrapper", "clang-offload-bundler", "clang-offload-wrapper", "file-table-tform"),
    *("llvm-foreach", "llvm-link", "llvm-spirv", "spirv-to-ir-wrapper", "sycl-post-link"),
)
ONEAPI_FILES = ("libsycl.so", "libsycl-devicelib-host.a", "libsycl-crt.bc", "libsycl-cmath.bc", "libsycl-complex.bc")
_SYSTEM_ONEAPI = Path("/opt/intel/oneapi")


def find_cuda(search: Search, *, toolkit: str | None, root: Path | None) -> Tool:
    """Return the nvcc of `root`, of CUDA_HOME, of PATH or of the system.

    Raises:
        NotHereError: there is none, or it has another release than `toolkit`.
        ToolError: it does not print its version.
    """
    homes = [root, *(Path(search.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if search.environ.get(name))]
    nvcc = next((home / "bin/nvcc" for home in homes if home is not None and (home / "bin/nvcc").is_file()), None)
    if nvcc is None:
        found = search.which("nvcc")
        others = (None if found is None else _real_nvcc(search, found), _SYSTEM_CUDA / "bin/nvcc")
        nvcc = next((path for path in others if path is not None and path.is_file()), None)
    if nvcc is None:
        raise NotHereError(
            "no CUDA toolkit: looked at CUDA_HOME, CUDA_PATH, nvcc on PATH and /usr/local/cuda",
            help="CUDA 13 and newer come as pinned wheels by themselves; for older ones set CUDA_HOME",
        )
    match = re.search(r"release ([0-9]+\.[0-9]+), V([0-9.]+)", search.run(nvcc, "--version"))
    if match is None:
        raise ToolError(f"'{nvcc}' does not say its version", help="set CUDA_HOME to a CUDA toolkit")
    base = nvcc.parent.parent
    require_release("the CUDA toolkit", base, found=match[1], toolkit=toolkit, remedy="set CUDA_HOME to CUDA")
    parts = [nvcc, *(base / name for name in _CUDA_PARTS), *_parts_behind(search, nvcc)]
    return Tool(path=nvcc, version=match[2], digest=search.digest_all(part for part in parts if part.is_file()))


def _real_nvcc(search: Search, nvcc: Path) -> Path | None:
    """Return the nvcc behind a wrapper script, whose own folder is not a toolkit and would mislead CMake.

    Debian's script is in /usr/bin, and /usr is the toolkit: its nvcc.profile has no TOP.
    """
    if (nvcc.resolve().parent.parent / "nvvm").is_dir():
        return nvcc.resolve()
    top = _says(search, nvcc).get("TOP")
    if top is not None:
        return Path(top).resolve() / "bin/nvcc"
    return nvcc if (nvcc.parent.parent / "include/cuda_runtime_api.h").is_file() else None


def _parts_behind(search: Search, nvcc: Path) -> list[Path]:
    """Return the files that Debian's nvcc script uses from outside of the toolkit's usual folders."""
    if (nvcc.parent.parent / "nvvm").is_dir():
        return []
    said = _says(search, nvcc)
    here, libdevice = said.get("_HERE_"), said.get("NVVMIR_LIBRARY_DIR")
    parts = [] if here is None else [Path(here) / name for name in ("nvcc", "cicc", "nvcc.profile")]
    return parts if libdevice is None else [*parts, Path(libdevice) / "libdevice.10.bc"]


def _says(search: Search, nvcc: Path) -> dict[str, str]:
    """Return the variables that nvcc prints about itself."""
    text = search.run(nvcc, "--dryrun", "-x", "cu", "-E", os.devnull)
    return {name: value.strip() for name, value in re.findall(r"^#\$ (\w+)=(.*)$", text, re.MULTILINE)}


def find_rocm(search: Search, *, toolkit: str | None) -> Tool:
    """Return the hipcc of ROCM_PATH, of the system or of PATH.

    Raises:
        NotHereError: there is none, or it has another release than `toolkit`.
        ToolError: it does not print its version.
    """
    homes = [Path(search.environ[name]) for name in ("ROCM_PATH", "ROCM_HOME") if search.environ.get(name)]
    candidates = [home / "bin/hipcc" for home in (*homes, _SYSTEM_ROCM)]
    hipcc = next((path for path in candidates if path.is_file()), None) or search.which("hipcc")
    if hipcc is not None and not (hipcc.parent.parent / "include/hip").is_dir():
        hipcc = hipcc.resolve()  # the path may be a link into a ROCm
    if hipcc is None:
        raise NotHereError(
            "no ROCm: looked at ROCM_PATH, /opt/rocm and hipcc on PATH",
            help="install ROCm, or set ROCM_PATH to it; in CI use a ROCm container",
        )
    said = search.run(hipcc, "--version", variables=HIP_PLATFORM)
    match = re.search(r"^HIP version: ([0-9]+\.[0-9]+)", said, re.MULTILINE)
    if match is None:
        raise ToolError(f"'{hipcc}' does not say its version", help="set ROCM_PATH to a ROCm")
    require_release("the ROCm with hipcc", hipcc, found=match[1], toolkit=toolkit, remedy="set ROCM_PATH to ROCm")
    version = " ".join(line.strip() for line in said.splitlines()[:2])
    return Tool(path=hipcc, version=version, digest=search.digest_all([hipcc.resolve(), *_hip_parts(said)]))


def _hip_parts(said: str) -> Iterator[Path]:
    """Yield the files that hipcc uses, from its own output: clang and the device libraries."""
    folder = re.search(r"^InstalledDir: (.+)$", said, re.MULTILINE)
    major = re.search(r"clang version ([0-9]+)", said)
    if folder is None or major is None:
        return
    base = Path(folder[1].strip())
    # A distribution may have several clangs: prefer the one for this version.
    names = (base / f"clang-{major[1]}", base / "clang")
    yield from (path.resolve() for path in names[:1] if path.is_file())
    yield from (path.resolve() for path in names[1:] if path.is_file() and not names[0].is_file())
    for root in (base.parent, *base.parent.parents):
        bitcode = sorted((*root.glob("amdgcn/bitcode/*.bc"), *root.glob("lib/*/amdgcn/bitcode/*.bc")))
        if bitcode:
            yield from bitcode
            return


def find_oneapi(search: Search, *, toolkit: str | None) -> tuple[Path, Path | None]:
    """Return icpx, from CXX or by searching, and ocloc, which icpx runs by name to make machine code for GPUs.

    Links are not resolved, because the compiler driver depends on its own name.

    Raises:
        NotHereError: there is none, or it has another release than `toolkit`.
    """
    named = search.environ.get("CXX")
    found = search.which(named) if named else _in_oneapi(search, "compiler/latest/bin/icpx")
    if found is None and named:
        raise NotHereError(f"CXX names '{named}', which is not there", help="unset CXX, or name icpx")
    if found is None:
        raise NotHereError(
            f"no oneAPI compiler: looked for icpx in ONEAPI_ROOT, in {_SYSTEM_ONEAPI} and on PATH",
            help="install oneAPI and source its setvars.sh, or set ONEAPI_ROOT; in CI use a oneAPI container",
        )
    match = re.search(r"oneAPI DPC\+\+/C\+\+ Compiler ([0-9]+\.[0-9]+)", search.run(found, "--version"))
    if match is None:
        raise NotHereError(
            f"'{found}' is not the C++ compiler of oneAPI, which XPU needs",
            help="unset CXX, or set it to icpx",
        )
    require_release("the oneAPI compiler", found, found=match[1], toolkit=toolkit, remedy="set ONEAPI_ROOT to")
    return found, _in_oneapi(search, "ocloc/latest/bin/ocloc")


def _in_oneapi(search: Search, place: str) -> Path | None:
    """Return a program of oneAPI, or the one of this name on PATH."""
    homes = [Path(search.environ["ONEAPI_ROOT"])] if search.environ.get("ONEAPI_ROOT") else []
    candidates = [home / place for home in (*homes, _SYSTEM_ONEAPI)]
    return next((path for path in candidates if path.is_file()), None) or search.which(Path(place).name)


def find_metal(search: Search) -> Tool:
    """Return the Metal compiler that xcrun names.

    Raises:
        NotHereError: there is none.
    """
    found = search.which("xcrun")
    said = "" if found is None else search.run(found, "-sdk", "macosx", "--find", "metal").strip()
    if found is None or not Path(said).is_file():
        raise NotHereError(
            "no Metal compiler: xcrun finds no 'metal'",
            help="install Xcode, then its toolchain: xcodebuild -downloadComponent MetalToolchain",
        )
    metal = Path(said)
    parts = [path for path in (metal, metal.with_name("metallib"), metal.with_name("air-lld")) if path.is_file()]
    return Tool(path=metal, version=search.first_line(metal, "--version"), digest=search.digest_all(parts))
