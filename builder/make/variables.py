"""The variables of a build that name its tools, and those by which its compilers share the cores."""

from pathlib import Path

from packaging.version import Version

from builder.make.job import Job
from builder.toolchain import Toolchain, device_compilers

_JOBSERVER_SINCE = Version("13.0")
"""The first nvcc that asks a jobserver before it compiles one more architecture."""


def of_cores(job: Job) -> dict[str, str]:
    """Return the variables that tell ninja and nvcc how much they may run."""
    if job.jobserver:
        # Given a number, ninja would not ask the jobserver.
        return {**job.jobserver, **({"NVCC_APPEND_FLAGS": "--jobserver"} if _nvcc_shares(job) else {})}
    return {} if job.cores is None else {"CMAKE_BUILD_PARALLEL_LEVEL": str(job.cores)}


def nvcc_threads(job: Job) -> int:
    """Return how many architectures of a source nvcc may compile at once.

    If nvcc asks the jobserver, as many as there are cores, since each takes a token; else as many as ninja, with one
    process for each source, would leave idle.
    """
    cores = job.cores or 1
    sources = sum(path.endswith(".cu") for path in job.project.files)
    return cores if _nvcc_shares(job) else max(1, cores // max(1, sources))


def _nvcc_shares(job: Job) -> bool:
    cuda = None if job.toolchain is None else job.toolchain.cuda
    return bool(job.jobserver) and cuda is not None and Version(cuda.version) >= _JOBSERVER_SINCE


def of_tools(toolchain: Toolchain, *, cuda_root: Path | None) -> dict[str, str]:
    """Return what names the compilers, with the CUDA toolkit where it is seen; nothing of the system's own."""
    result = {"CC": str(toolchain.cc.path), "CXX": str(toolchain.cxx.path)}
    if cuda_root is not None:
        result |= {name: str(cuda_root) for name in ("CUDAToolkit_ROOT", "CUDA_HOME")}
        result |= {"CUDACXX": str(cuda_root / "bin/nvcc"), "CUDAHOSTCXX": str(toolchain.cxx.path)}
    if toolchain.hip is not None:
        result |= {"ROCM_PATH": str(toolchain.hip.path.parent.parent), **device_compilers.HIP_PLATFORM}
    return result
