"""The variables that name the tools of a toolchain, for a build and for a shell."""

from pathlib import Path

from builder.toolchain import Toolchain, device_compilers


def of(toolchain: Toolchain, *, cuda_root: Path | None) -> dict[str, str]:
    """Return what names the compilers, with the CUDA toolkit where it is seen; nothing of the system's own."""
    result = {"CC": str(toolchain.cc.path), "CXX": str(toolchain.cxx.path)}
    if cuda_root is not None:
        result |= {name: str(cuda_root) for name in ("CUDAToolkit_ROOT", "CUDA_HOME")}
        result |= {"CUDACXX": str(cuda_root / "bin/nvcc"), "CUDAHOSTCXX": str(toolchain.cxx.path)}
    if toolchain.hip is not None:
        result |= {"ROCM_PATH": str(toolchain.hip.path.parent.parent), **device_compilers.HIP_PLATFORM}
    return result
